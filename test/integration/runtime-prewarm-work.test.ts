// Work and facts, leases, revocation, fence and heartbeats, with a scheduler played by the test.
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { durationFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import {
  type AttemptRef,
  AttemptRefSchema,
  type Fact,
  FactSchema,
  type Heartbeat,
  HeartbeatReplySchema,
  HeartbeatSchema,
  RevokeSchema,
  WorkSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { LEASE_CHECK_MS, NODE_FENCE_MS } from '../../services/common/limits.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { eventually, processesWith, startNode, type TestNode } from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const BACKEND = 'process';

describe('runtime-prewarm: work', () => {
  let nats: TestNats;
  let node: TestNode;
  let bus: Bus;
  let beat: Heartbeat | undefined;
  let revoked: AttemptRef[] = [];
  let answering = true;
  before(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'scheduler-of-the-test' });
    bus.nc.subscribe(subjects.anyHeartbeat, {
      callback: (_error, message) => {
        if (!answering) return;
        beat = fromBinary(HeartbeatSchema, message.data);
        message.respond(toBinary(HeartbeatReplySchema, create(HeartbeatReplySchema, { revoked })));
      },
    });
    node = await startNode({
      natsUrl: nats.url,
      node: { max_init_workers: 3, max_run_workers: 2, max_postrun_workers: 5, max_ready: 7 },
    });
    await eventually('a heartbeat', () => beat !== undefined);
  });
  after(async () => {
    await node[Symbol.asyncDispose]();
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  const refOf = (sessionId: string, more: object = {}): AttemptRef =>
    create(AttemptRefSchema, {
      sessionId,
      attempt: 1,
      nodeId: node.nodeId,
      bootId: beat!.bootId,
      taskId: 't',
      ...more,
    });

  const send = async (ref: AttemptRef, runtime: object, more: object = {}): Promise<void> => {
    const value = {
      runtime: { backend: BACKEND, ...runtime },
      timeoutMs: 30_000n,
      leaseMs: 60_000n,
      ...more,
    };
    const work = create(WorkSchema, { ref, kind: { case: 'prepare', value } });
    await publish(
      bus,
      createBlobStore(bus),
      subjects.work('prepare', node.nodeId),
      toBinary(WorkSchema, work),
    );
  };

  /** The first fact about a session, stored in the stream. */
  const factOf = async (sessionId: string, kind: 'ready' | 'failed'): Promise<Fact> => {
    let found: Fact | undefined;
    await eventually(`${kind} of ${sessionId}`, async () => {
      for (let seq = 1; found === undefined; seq++) {
        const message = await bus.jsm.streams.getMessage(STREAMS.facts.name, { seq }).catch(() => undefined);
        if (message === undefined) return false;
        const fact = fromBinary(FactSchema, message.data);
        if (fact.ref?.sessionId === sessionId && fact.kind.case === kind) found = fact;
      }
      return true;
    });
    return found!;
  };

  const failureOf = async (sessionId: string) => {
    const { kind } = await factOf(sessionId, 'failed');
    if (kind.case !== 'failed') throw new Error(`not a failure: ${kind.case}`);
    const { reason = '', message = '', infrastructure } = kind.value.failure ?? {};
    return { reason, message, infrastructure, stage: kind.value.stage };
  };

  const leasedTo = async (sessionId: string): Promise<string[]> =>
    (await node.runtimes.listRuntimes({})).runtimes
      .filter(({ owner }) => owner?.sessionId === sessionId)
      .map(({ runtimeId }) => runtimeId);

  it('tells in heartbeats what the node has and can do', () => {
    const { nodeId, prepareSlots, runSlots, evaluateSlots, readySlots, backends } = beat!;
    expect(nodeId).to.equal(node.nodeId);
    expect([prepareSlots, runSlots, evaluateSlots, readySlots]).to.eql([3, 2, 5, 7]);
    expect(backends).to.include('process');
    expect(beat!.defaultBackend).to.equal(backends.includes('bubblewrap') ? 'bubblewrap' : '');
    const imagesOf = (name: string) => beat!.offers.find(({ backend }) => backend === name)?.images;
    expect(beat!.offers.map(({ backend }) => backend)).to.eql(backends);
    expect(imagesOf('process')).to.eql([]);
    expect(imagesOf('bubblewrap')).to.eql(backends.includes('bubblewrap') ? ['host'] : undefined);
  });

  it('prepares by steps in their order, and publishes the leased sandbox', async () => {
    const upload = (target: string, text: string, mode = 0) => ({ target, content: Buffer.from(text), mode });
    await send(refOf('s-steps'), {
      env: { NAME: 'task' },
      prepare: [
        {
          step: {
            case: 'exec',
            value: { command: 'mkdir made && pwd && echo "$NAME $MORE" > made/env', env: { MORE: 'step' } },
          },
        },
        {
          step: {
            case: 'uploadFile',
            value: upload('/polar/session/workspace/made/run.sh', 'cat made/env', 0o755),
          },
        },
        {
          step: {
            case: 'uploadDir',
            value: { target: '/polar/session/dir', files: [upload('a/b', 'below')] },
          },
        },
        {
          step: {
            case: 'exec',
            value: { command: './made/run.sh > out; cat ../dir/a/b >> out', cwd: '/polar/session/workspace' },
          },
        },
      ],
    });
    const { kind, ref } = await factOf('s-steps', 'ready');
    expect(ref?.bootId).to.equal(beat!.bootId);
    const runtimeId = kind.case === 'ready' ? kind.value.runtimeId : '';
    expect(await leasedTo('s-steps')).to.eql([runtimeId]);
    expect((await node.sh(runtimeId, 'cat out')).out).to.equal('task step\nbelow');
    await eventually('the heartbeat names it', () =>
      beat!.attempts.some(({ sessionId }) => sessionId === 's-steps'),
    );
  });

  it('publishes the same sandbox again when the work comes again', async () => {
    const ref = refOf('s-again');
    const slow = { prepare: [{ step: { case: 'exec', value: { command: 'sleep 0.3' } } }] };
    for (let meanwhile = 0; meanwhile < 2; meanwhile++) await send(ref, slow);
    const first = await factOf('s-again', 'ready');
    await send(ref, slow);
    await sleep(500);
    expect(await leasedTo('s-again')).to.eql([first.kind.case === 'ready' ? first.kind.value.runtimeId : '']);
  });

  it('tries a step as often as it says, after its pause, each further time after one twice as long', async () => {
    const command = `date +%s%3N >> tries; set -- $(cat tries)
      [ $# = 3 ] && [ $(($2 - $1)) -ge 200 ] && [ $(($3 - $2)) -ge 400 ]`;
    const value = { command, maxAttempts: 3, retryBackoff: durationFromMs(200) };
    await send(refOf('s-tries'), { prepare: [{ step: { case: 'exec', value } }] });
    expect((await factOf('s-tries', 'ready')).kind.case).to.equal('ready');
  });

  it('says which step failed and how, and leaves no sandbox', async () => {
    const command = 'echo it is broken >&2; exit 3';
    const good = { step: { case: 'exec', value: { command: 'true' } } };
    await send(refOf('s-broken'), { prepare: [good, { step: { case: 'exec', value: { command } } }] });
    const failure = await failureOf('s-broken');
    expect(failure).to.include({ reason: 'PREPARE_FAILED', stage: 'prepare', infrastructure: false });
    expect(failure.message).to.match(/prepare\[1\].*exit code 3.*it is broken/);
    expect(await leasedTo('s-broken')).to.eql([]);
  });

  it('refuses an upload that would leave the sandbox', async () => {
    const value = {
      target: '/polar/session/x',
      files: [{ target: '../../../../etc/x', content: Buffer.from('') }],
    };
    await send(refOf('s-escape'), { prepare: [{ step: { case: 'uploadDir', value } }] });
    expect(await failureOf('s-escape')).to.include({ reason: 'UNSAFE_PATH', infrastructure: false });
  });

  it('resolves links that an earlier step has left inside the sandbox, and replaces the last one', async () => {
    const folder = '/polar/session/workspace';
    const plant = 'ln -s / top; ln -s ../../../../../../../../../.. up; ln -s /etc/hosts file';
    const files = ['top/tmp/polar-a', 'up/tmp/polar-b', 'file'].map((target) => ({
      target,
      content: Buffer.from(target),
    }));
    await send(refOf('s-links'), {
      prepare: [
        { step: { case: 'exec', value: { command: plant } } },
        { step: { case: 'uploadDir', value: { target: folder, files } } },
      ],
    });
    const { kind } = await factOf('s-links', 'ready');
    const id = kind.case === 'ready' ? kind.value.runtimeId : '';
    const { out } = await node.sh(id, 'cat file; [ -L file ] || echo " is no link"');
    expect(out).to.equal('file is no link\n');
    for (const path of ['/tmp/polar-a', '/tmp/polar-b']) expect(existsSync(path), path).to.equal(false);
  });

  it('keeps its limit on the preparation, an infrastructure failure', async () => {
    const prepare = [{ step: { case: 'exec', value: { command: 'sleep 600' } } }];
    await send(refOf('s-slow'), { prepare }, { timeoutMs: 700n });
    expect(await failureOf('s-slow')).to.include({ reason: 'PREPARE_TIMEOUT', infrastructure: true });
    expect(await leasedTo('s-slow')).to.eql([]);
  });

  it('refuses backends and images that it does not have', async () => {
    await send(refOf('s-backend'), { backend: 'vm' });
    const backend = await failureOf('s-backend');
    expect(backend).to.include({ reason: 'BACKEND_UNAVAILABLE', infrastructure: false });
    expect(backend.message).to.contain('bubblewrap, process');
    await send(refOf('s-image'), { image: 'ubuntu' });
    expect(await failureOf('s-image')).to.include({ reason: 'IMAGE_NOT_FOUND', infrastructure: false });
  });

  it('drops work that was meant for an earlier boot', async () => {
    await send(refOf('s-stale', { bootId: 'boot-before' }), {});
    await send(refOf('s-fresh'), {});
    await factOf('s-fresh', 'ready');
    await sleep(300);
    expect(await leasedTo('s-stale')).to.eql([]);
  });

  it('prepares several at a time, up to its slots', async () => {
    const meeting = mkdtempSync(join(tmpdir(), 'polar-test-meeting-'));
    chmodSync(meeting, 0o777);
    // Each waits for all three.
    const command = `mktemp ${meeting}/XXXXXX >/dev/null; until [ $(ls ${meeting} | wc -l) = 3 ]; do sleep 0.05; done`;
    const prepare = [{ step: { case: 'exec', value: { command } } }];
    await Promise.all(['s-par-1', 's-par-2', 's-par-3'].map((session) => send(refOf(session), { prepare })));
    for (const session of ['s-par-1', 's-par-2', 's-par-3']) {
      expect((await factOf(session, 'ready')).kind.case).to.equal('ready');
    }
    rmSync(meeting, { recursive: true });
  });

  it('removes the sandbox of a revoked attempt at once, with what runs in it', async () => {
    const ref = refOf('s-revoke');
    await send(ref, {});
    const { kind } = await factOf('s-revoke', 'ready');
    const runtimeId = kind.case === 'ready' ? kind.value.runtimeId : '';
    const nap = sleepMark();
    const running = node.sh(runtimeId, nap).catch((error) => error);
    await eventually('it runs', () => processesWith(nap).length > 0);
    bus.nc.publish(
      subjects.control(node.nodeId),
      toBinary(RevokeSchema, create(RevokeSchema, { attempts: [ref] })),
    );
    expect((await running).reason).to.equal('RUNTIME_LOST');
    await eventually('it is gone', async () => (await leasedTo('s-revoke')).length === 0);
    const box = `${node.folder}/data/nodes/node-1/boxes/${runtimeId}`;
    await eventually('its folder is gone', () => !existsSync(box));
  });

  it('removes what the answer to a heartbeat revokes, one in the making too', async () => {
    const ready = refOf('s-hb-ready');
    const making = refOf('s-hb-making');
    await send(ready, {});
    await factOf('s-hb-ready', 'ready');
    await send(making, { prepare: [{ step: { case: 'exec', value: { command: 'sleep 600' } } }] });
    await eventually('both are told', () =>
      beat!.attempts.some(({ sessionId }) => sessionId === 's-hb-making'),
    );
    revoked = [ready, making];
    await eventually('both are gone', async () => {
      const told = beat!.attempts.map(({ sessionId }) => sessionId);
      return !told.includes('s-hb-making') && !told.includes('s-hb-ready');
    });
    revoked = [];
    expect(await failureOf('s-hb-making')).to.include({ reason: 'RUNTIME_LOST', infrastructure: true });
  });

  it('ends a lease that is not renewed, and not one that is', async () => {
    const [kept, ended] = await Promise.all(
      ['s-kept', 's-ended'].map((session) =>
        node.acquire({ session, ttlMs: 3_000, spec: { backend: BACKEND } }),
      ),
    );
    await node.runtimes.renewLease({ runtimeId: kept!, ttl: { seconds: 60n } });
    await eventually('the lease ended', async () => (await leasedTo('s-ended')).length === 0);
    expect(await leasedTo('s-kept')).to.eql([kept]);
    const renewal = await node.runtimes
      .renewLease({ runtimeId: ended!, ttl: { seconds: 60n } })
      .catch((e) => e);
    expect(renewal.reason).to.equal('NOT_FOUND');
    const short = await node.runtimes.renewLease({ runtimeId: kept!, ttl: { seconds: 0n } }).catch((e) => e);
    expect(short.reason).to.equal('INVALID_REQUEST');
  });

  it('leases a sandbox anew for the command that says so', async () => {
    const id = await node.acquire({ session: 's-exec-lease', ttlMs: 3_000, spec: { backend: BACKEND } });
    await node.sh(id, 'true', { leaseMs: 60_000 });
    const { runtimes } = await node.runtimes.listRuntimes({});
    const expireTime = runtimes.find(({ runtimeId }) => runtimeId === id)?.expireTime;
    expect(timestampMs(expireTime!)).to.be.greaterThan(Date.now() + 30_000);
    const short = await node.sh(id, 'true', { leaseMs: 10 }).catch((e) => e);
    expect(short.reason).to.equal('INVALID_REQUEST');
  });

  it('keeps the sandbox of an attempt that the scheduler knows, however long it waits', async () => {
    const ref = refOf('s-waits');
    await send(ref, {}, { leaseMs: 1_000n });
    await factOf('s-waits', 'ready');
    await sleep(2_500);
    expect(await leasedTo('s-waits')).to.have.length(1);
    revoked = [ref];
    await eventually('it is revoked', async () => (await leasedTo('s-waits')).length === 0);
    revoked = [];
  });

  it('counts leases by a steady clock', async () => {
    const runtimeId = await node.acquire({ session: 's-clock', ttlMs: 600_000, spec: { backend: BACKEND } });
    const { now } = Date;
    // Somebody sets the time of day.
    Date.now = () => now() + 3_600_000;
    try {
      await sleep(LEASE_CHECK_MS * 2);
    } finally {
      Date.now = now;
    }
    expect(await leasedTo('s-clock')).to.eql([runtimeId]);
  });

  it('goes on telling when the folder of images has gone', async () => {
    rmSync(join(node.folder, 'data/images'), { recursive: true, force: true });
    beat = undefined;
    await eventually('a heartbeat', () => beat !== undefined);
  });

  it('releases, twice without an error', async () => {
    const runtimeId = await node.acquire({ session: 's-release', spec: { backend: BACKEND } });
    await node.runtimes.releaseRuntime({ runtimeId });
    await node.runtimes.releaseRuntime({ runtimeId });
    expect(await leasedTo('s-release')).to.eql([]);
  });

  it('uses eval_prepare for an evaluation where it is set', async () => {
    const step = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
    const spec = {
      backend: BACKEND,
      prepare: [step('echo run > kind')],
      evalPrepare: { steps: [step('echo eval > kind')] },
    };
    const runtimeId = await node.acquire({ session: 's-eval', spec, forEvaluation: true });
    expect((await node.sh(runtimeId, 'cat kind')).out).to.equal('eval\n');
  });

  it('lets go of all sessions when the scheduler falls silent, and counts as started anew', async () => {
    const before = beat!.bootId;
    await node.acquire({ session: 's-fence', spec: { backend: BACKEND } });
    answering = false;
    await sleep(NODE_FENCE_MS / 4);
    expect(await leasedTo('s-fence')).to.have.length(1);
    await eventually('it is gone', async () => (await leasedTo('s-fence')).length === 0);
    // Nobody was seen since: nothing is removed for that.
    const after = await node.acquire({ session: 's-unseen', spec: { backend: BACKEND } });
    await sleep(NODE_FENCE_MS + 500);
    expect(await leasedTo('s-unseen')).to.eql([after]);
    answering = true;
    await eventually('a heartbeat of a new boot', () => beat!.bootId !== before);
  });

  it('goes on after a kill of the NATS server', async () => {
    await nats.kill();
    await nats.start();
    await eventually('a heartbeat', async () => {
      beat = undefined;
      await sleep(1_200);
      return beat !== undefined;
    });
    await send(refOf('s-after-kill'), {});
    expect((await factOf('s-after-kill', 'ready')).kind.case).to.equal('ready');
  });
});
