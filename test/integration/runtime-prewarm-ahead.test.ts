// Sandboxes of evaluations that are made ahead of them, with a scheduler played by the test.
import { readFileSync } from 'node:fs';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { type RuntimeSpec, RuntimeSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import {
  type AttemptRef,
  AttemptRefSchema,
  HeartbeatReplySchema,
  HeartbeatSchema,
  RevokeSchema,
  WorkSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  processesWith,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const step = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
const specOf = (evalCommand: string, backend = 'bubblewrap'): RuntimeSpec =>
  create(RuntimeSpecSchema, {
    backend,
    prepare: [step('echo run > kind')],
    evalPrepare: { steps: [step(evalCommand)] },
  });

/** Processes of a command of a step, without the shell that waits for it and has its text too. */
const stepsOf = (command: string): number[] =>
  processesWith(command).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep'));

async function waitingStep(command: string): Promise<number[]> {
  await eventually('a step is under way', () => stepsOf(command).length > 0);
  return stepsOf(command);
}

if (bwrapIsThere) {
  describe('runtime-prewarm: ahead of evaluations', () => {
    let nats: TestNats;
    let bus: Bus;
    let node: TestNode;
    let bootId = '';
    let sessions = 0;
    before(async () => {
      nats = await startNats();
      bus = await openBus({ url: nats.url, name: 'scheduler-of-the-test' });
      bus.nc.subscribe(subjects.anyHeartbeat, {
        callback: (_error, message) => {
          bootId = fromBinary(HeartbeatSchema, message.data).bootId;
          message.respond(toBinary(HeartbeatReplySchema, create(HeartbeatReplySchema)));
        },
      });
    });
    after(async () => {
      await bus.close();
      await nats[Symbol.asyncDispose]();
    });
    const start = async (more: object = {}): Promise<void> => {
      bootId = '';
      node = await startNode({
        natsUrl: nats.url,
        node: { max_postrun_ready: 1, layers_free_mb: 0, ...more },
      });
      await eventually('a heartbeat', () => bootId !== '');
    };
    afterEach(() => node[Symbol.asyncDispose]());

    /** Send the work that prepares an attempt whose evaluation may prepare for so long. */
    const prepare = async (spec: RuntimeSpec, evaluateTimeoutMs = 30_000n): Promise<AttemptRef> => {
      const sessionId = `s-${++sessions}`;
      const ref = create(AttemptRefSchema, {
        sessionId,
        attempt: 1,
        nodeId: node.nodeId,
        bootId,
        taskId: 't',
      });
      const value = { runtime: spec, timeoutMs: 30_000n, leaseMs: 60_000n, evaluateTimeoutMs };
      const work = toBinary(WorkSchema, create(WorkSchema, { ref, kind: { case: 'prepare', value } }));
      await publish(bus, createBlobStore(bus), subjects.work('prepare', node.nodeId), work);
      return ref;
    };
    const prepared = async (spec: RuntimeSpec, evaluateTimeoutMs?: bigint): Promise<AttemptRef> => {
      const ref = await prepare(spec, evaluateTimeoutMs);
      await eventually('the sandbox of the run', async () => (await of(ref, 'run')).length === 1);
      return ref;
    };
    const of = async ({ sessionId }: AttemptRef, purpose: string): Promise<string[]> =>
      (await node.runtimes.listRuntimes({})).runtimes
        .filter(({ owner }) => owner?.sessionId === sessionId && owner.purpose === purpose)
        .map(({ runtimeId }) => runtimeId);
    const madeAhead = async (ref: AttemptRef): Promise<string> => {
      await eventually('the sandbox of the evaluation', async () => (await of(ref, 'evaluate')).length === 1);
      return (await of(ref, 'evaluate'))[0] ?? '';
    };
    /** As the evaluator asks for it. */
    const acquire = async (ref: AttemptRef, spec: RuntimeSpec, timeoutMs = 20_000, signal?: AbortSignal) => {
      const { sessionId, attempt } = ref;
      const owner = { sessionId, attempt, purpose: 'evaluate' };
      const times = { ttl: { seconds: 600n }, prepareTimeout: durationFromMs(timeoutMs) };
      const { runtime } = await node.runtimes.acquireRuntime(
        { spec, owner, forEvaluation: true, ...times },
        signal === undefined ? {} : { signal },
      );
      return runtime?.runtimeId ?? '';
    };
    const errorOf = (call: Promise<unknown>) =>
      call.then(
        () => undefined,
        (error) => error,
      );
    const revoke = (ref: AttemptRef): void =>
      bus.nc.publish(
        subjects.control(node.nodeId),
        toBinary(RevokeSchema, create(RevokeSchema, { attempts: [ref] })),
      );

    it('makes one when the run has its own, and gives it to the evaluation, once', async () => {
      await start();
      const spec = specOf('echo eval > kind');
      const ref = await prepared(spec);
      const ahead = await madeAhead(ref);
      expect(await acquire(ref, spec)).to.equal(ahead);
      expect((await node.sh(ahead, 'cat kind')).out).to.equal('eval\n');
      expect(await acquire(ref, spec)).to.not.equal(ahead);
    });

    it('makes none where the evaluation needs none, nothing is isolated, or the node says so', async () => {
      await start();
      const spec = specOf('touch made');
      const without = await prepared(spec, 0n);
      const seen = await prepared(specOf('touch made', 'process'));
      await madeAhead(await prepared(spec));
      expect(await of(without, 'evaluate')).to.eql([]);
      expect(await of(seen, 'evaluate'), 'its run could read it').to.eql([]);
      await node[Symbol.asyncDispose]();
      await start({ max_postrun_ready: 0 });
      const ref = await prepared(spec);
      await prepared(spec, 0n);
      expect(await of(ref, 'evaluate')).to.eql([]);
    });

    it('holds no more than it may, the longest-wished first, and goes on when one is taken', async () => {
      await start();
      const spec = specOf('true');
      const refs = [await prepared(spec), await prepared(spec), await prepared(spec)] as const;
      const first = await madeAhead(refs[0]);
      expect(await of(refs[1], 'evaluate')).to.eql([]);
      expect(await acquire(refs[0], spec)).to.equal(first);
      const second = await madeAhead(refs[1]);
      expect(await of(refs[2], 'evaluate')).to.eql([]);
      // Its turn has not come: the evaluation makes its own, and nothing is made for it again.
      const own = await acquire(refs[2], spec);
      expect(await acquire(refs[1], spec)).to.equal(second);
      expect(await of(refs[2], 'evaluate')).to.eql([own]);
    });

    it('is waited for where it is in the making', async () => {
      await start();
      const nap = sleepMark();
      const spec = specOf(`${nap} & wait`);
      const ref = await prepared(spec);
      const steps = await waitingStep(nap);
      const asked = acquire(ref, spec);
      await sleep(300);
      expect(stepsOf(nap)).to.eql(steps);
      for (const pid of steps) process.kill(pid, 'SIGTERM');
      expect(await asked).to.equal(await madeAhead(ref));
    });

    it('ends with the time of the evaluation that waits for it, and gives its place on', async () => {
      await start();
      const nap = sleepMark();
      const slow = specOf(nap);
      const [ref, next] = [await prepared(slow), await prepared(specOf('true'))];
      await eventually('it is in the making', () => processesWith(nap).length > 0);
      expect(await of(next, 'evaluate')).to.eql([]);
      expect((await errorOf(acquire(ref, slow, 500))).reason).to.equal('PREPARE_TIMEOUT');
      await eventually('its steps are dead', () => processesWith(nap).length === 0);
      await madeAhead(next);
    });

    it('is there for the next evaluator when the first one leaves', async () => {
      await start();
      const nap = sleepMark();
      const spec = specOf(`${nap} & wait`);
      const ref = await prepared(spec);
      const steps = await waitingStep(nap);
      const leaving = new AbortController();
      const left = errorOf(acquire(ref, spec, 20_000, leaving.signal));
      await sleep(200);
      leaving.abort();
      await left;
      const asked = acquire(ref, spec);
      await sleep(200);
      for (const pid of steps) process.kill(pid, 'SIGTERM');
      expect(await asked).to.equal(await madeAhead(ref));
    });

    it('leaves it to the evaluation to say why it cannot be made', async () => {
      await start();
      const spec = specOf('echo it is broken >&2; exit 3');
      const [ref, next] = [await prepared(spec), await prepared(specOf('true'))];
      await madeAhead(next);
      const error = await errorOf(acquire(ref, spec));
      expect(error.reason).to.equal('PREPARE_FAILED');
      expect(error.message).to.contain('it is broken');
    });

    it('gives nobody what was made of something else', async () => {
      await start();
      const spec = specOf('echo eval > kind');
      const ref = await prepared(spec);
      const ahead = await madeAhead(ref);
      const other = await acquire(ref, specOf('echo other > kind'));
      expect(other).to.not.equal(ahead);
      expect((await node.sh(other, 'cat kind')).out).to.equal('other\n');
    });

    it('goes with its attempt: made, in the making, or only wished for', async () => {
      await start({ max_postrun_ready: 2 });
      const made = await prepared(specOf('true'));
      await madeAhead(made);
      const [nap, longer] = [sleepMark(), sleepMark()];
      const making = await prepared(specOf(nap));
      await eventually('it is in the making', () => processesWith(nap).length > 0);
      const wished = await prepared(specOf(longer));
      revoke(wished);
      await eventually('its run is gone', async () => (await of(wished, 'run')).length === 0);
      revoke(made);
      revoke(making);
      await eventually(
        'all is gone',
        async () => (await node.runtimes.listRuntimes({})).runtimes.length === 0,
      );
      await eventually('its steps are dead', () => processesWith(nap).length === 0);
      await Promise.all([0, 1].map(async () => await madeAhead(await prepared(specOf('true')))));
      expect(processesWith(longer)).to.eql([]);
    });

    it('goes with the sandbox of its run', async () => {
      await start();
      const ref = await prepared(specOf('true'));
      await madeAhead(ref);
      const [runtimeId = ''] = await of(ref, 'run');
      await node.runtimes.releaseRuntime({ runtimeId });
      await eventually('it is gone', async () => (await of(ref, 'evaluate')).length === 0);
    });

    it('takes no turn that a run could have', async () => {
      await start({ creates_per_s: { bubblewrap: 1 }, creates_burst: 1 });
      const evaluated = [30_000n, 0n, 0n, 0n];
      const refs = await Promise.all(evaluated.map((timeoutMs) => prepare(specOf('true'), timeoutMs)));
      const ahead = await madeAhead(refs[0]!);
      const order = (await node.runtimes.listRuntimes({})).runtimes.map(({ runtimeId }) => runtimeId);
      const runs = await Promise.all(refs.map((ref) => of(ref, 'run')));
      expect(order.slice(0, -1)).to.have.members(runs.flat());
      expect(runs.flat()).to.have.length(refs.length);
      expect(order.at(-1)).to.equal(ahead);
    });
  });
}
