// Two schedulers as processes on one real nats-server: one leads, the other follows and takes over, however the first goes.
import { fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { CommitSchema } from '../../gen/ts/polar/event/v1/state_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { PolarError } from '../../services/common/errors.ts';
import { LEASE_RENEW_MS } from '../../services/common/limits.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { lastSeqOf } from '../../services/scheduler/journal/chain.ts';
import { polar } from '../support/cli.ts';
import { sleepingFlags } from '../support/clock-flags.ts';
import { type FakeNode, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  groupOf,
  type SchedulerProcess,
  sessionsOf,
  spawnScheduler,
  taskSpec,
  until,
} from '../support/scheduler.ts';

const SLOTS = { runSlots: 8, prepareSlots: 8, readySlots: 8, evaluateSlots: 8 };

const refusal = (call: Promise<unknown>): Promise<PolarError> =>
  call.then(
    () => expect.fail('it was answered'),
    (error) => error,
  );

/** The epoch of every commit, in the log's order. */
async function epochsOf(bus: Bus): Promise<number[]> {
  const last = await lastSeqOf(bus);
  const read = async (seq: number): Promise<number> =>
    Number(fromBinary(CommitSchema, (await bus.direct.getMessage(STREAMS.state.name, { seq })).data).epoch);
  return await Promise.all(Array.from({ length: last }, (_, i) => read(i + 1)));
}

describe('scheduler lease', () => {
  let nats: TestNats;
  let bus: Bus;
  let node: FakeNode;
  let first: SchedulerProcess;
  let second: SchedulerProcess;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    node = await startFakeNode(nats.url, SLOTS);
    first = await spawnScheduler(nats.url);
    second = await spawnScheduler(nats.url);
  });
  afterEach(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  /** Sessions that run, and whose runs end when `go` is called. */
  async function runningTask(taskId: string) {
    const gate = Promise.withResolvers<void>();
    const { run } = node.on;
    node.on.run = async (work) => {
      await gate.promise;
      return await run(work);
    };
    const spec = taskSpec(taskId, { numSamples: 4 });
    const { sessionIds } = await first.client.submitTask({ spec, requestId: `r-${taskId}` });
    const runs = () => node.taken.filter(({ kind }) => kind.case === 'run');
    await until('all run', () => runs().length === 4);
    return { spec, sessionIds, go: () => gate.resolve() };
  }

  /** The second scheduler leads, and what the first one began goes on as if nothing had been. */
  async function expectTakenOver({ spec, sessionIds, go }: Awaited<ReturnType<typeof runningTask>>) {
    await until('the second one leads', async () => (await second.state()) === 'ok');
    const again = await second.client.submitTask({ spec, requestId: `r-${spec.taskId}` });
    expect(again.sessionIds).to.deep.equal(sessionIds);
    const other = taskSpec(`${spec.taskId}-2`);
    const clash = await refusal(second.client.submitTask({ spec: other, requestId: `r-${spec.taskId}` }));
    expect(clash.reason).to.equal('TASK_EXISTS');
    go();
    const { sessions } = await groupOf(bus, spec.taskId);
    expect(sessions.map(({ sessionId }) => sessionId)).to.deep.equal(sessionIds);
    expect(sessions.every(({ outcome }) => outcome === Outcome.COMPLETED)).to.equal(true);
    // A take-over costs no attempt: no sandbox was given up meanwhile.
    expect((await sessionsOf(second.client, spec.taskId)).map(({ attempt }) => attempt)).to.deep.equal([
      1, 1, 1, 1,
    ]);
  }

  async function expectOneChain(leaders: number): Promise<void> {
    const epochs = await epochsOf(bus);
    expect(epochs).to.deep.equal([...epochs].sort((a, b) => a - b));
    expect(new Set(epochs).size).to.equal(leaders);
  }

  it('refuses calls while it follows, and says who leads; when it stops, that one keeps the lead', async () => {
    expect([await first.state(), await second.state()]).to.deep.equal(['ok', 'following']);
    await first.client.submitTask({ spec: taskSpec('elsewhere') });
    const calls = [
      second.client.submitTask({ spec: taskSpec('here') }),
      second.client.getTask({ taskId: 'elsewhere' }),
      second.client.listNodes({}),
      second.client.watchTask({ taskId: 'elsewhere' })[Symbol.asyncIterator]().next(),
    ];
    for (const call of calls) {
      const error = await refusal(call);
      expect(error.reason).to.equal('NOT_LEADER');
      expect(error.leaderUrl).to.equal(first.url);
      expect(error.message).to.include(first.url);
    }
    second.signal('SIGTERM');
    await second.ended();
    // It finds the lease gone at its next renewal, and ends.
    const ends = first.ended().then(() => 'ends');
    expect(await Promise.race([ends, sleep(2 * LEASE_RENEW_MS)])).to.equal(undefined);
    await first.client.submitTask({ spec: taskSpec('after') });
    expect((await groupOf(bus, 'after')).sessions).to.have.length(1);
    await expectOneChain(1);
  });

  it('is found by the command line, at any of its addresses and through a take-over', async () => {
    const { task } = await first.client.submitTask({ spec: taskSpec('found') });
    const told = await polar(['status', 'found', '--json', '--rollout-url', second.url]);
    expect(told.code, told.stderr).to.equal(0);
    await groupOf(bus, 'found');
    await first.kill();
    const urls = `${first.url},${second.url}`;
    const [shown, watched] = await Promise.all([
      polar(['status', 'found', '--json', '--rollout-url', urls]),
      polar(['watch', 'found', '--rollout-url', urls]),
    ]);
    expect(shown.code, shown.stderr).to.equal(0);
    expect(JSON.parse(shown.stdout).sessions[0].taskId).to.equal(task?.spec?.taskId);
    expect(watched.code, watched.stderr).to.equal(0);
    await second.kill();
    const down = await polar(['status', '--rollout-url', urls]);
    expect(down.stderr).to.include('nobody answers');
  });

  it('takes over from one that was killed', async () => {
    const task = await runningTask('killed');
    await first.kill();
    await expectTakenOver(task);
    await first.start();
    expect(await first.state()).to.equal('following');
    await expectOneChain(2);
  });

  it('takes over from one that stands still, which ends when it goes on', async () => {
    const task = await runningTask('stopped');
    first.signal('SIGSTOP');
    await until('the second one leads', async () => (await second.state()) === 'ok');
    const late = first.client.submitTask({ spec: taskSpec('too-late') }, { timeoutMs: 5_000 });
    const read = first.client.getTask({ taskId: 'stopped' }, { timeoutMs: 5_000 });
    first.signal('SIGCONT');
    expect(await refusal(late)).to.be.instanceOf(Error);
    expect(await refusal(read)).to.be.instanceOf(Error);
    await first.ended();
    await expectTakenOver(task);
    expect((await refusal(second.client.getTask({ taskId: 'too-late' }))).reason).to.equal('NOT_FOUND');
    await expectOneChain(2);
  });

  it('takes over from one whose machine slept, which answers nothing of before', async () => {
    await second[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    first = await spawnScheduler(nats.url, {}, sleepingFlags());
    await until('it leads', async () => (await first.state()) === 'ok');
    second = await spawnScheduler(nats.url);
    const task = await runningTask('slept');
    first.signal('SIGSTOP');
    await until('the second one leads', async () => (await second.state()) === 'ok');
    const reads = [1, 2, 3].map(() =>
      refusal(first.client.getTask({ taskId: 'slept' }, { timeoutMs: 5_000 })),
    );
    first.signal('SIGCONT');
    for (const error of await Promise.all(reads)) expect(error).to.be.instanceOf(PolarError);
    await first.ended();
    await expectTakenOver(task);
  });

  it('takes over from one that stops, and back', async () => {
    const task = await runningTask('handed-over');
    first.signal('SIGTERM');
    await first.ended();
    await expectTakenOver(task);
    await first.start();
    second.signal('SIGTERM');
    await second.ended();
    await until('the first one leads again', async () => (await first.state()) === 'ok');
    expect((await first.client.getTask({ taskId: 'handed-over' })).task?.sessionsByOutcome).to.deep.equal({
      completed: 4,
    });
    await expectOneChain(3);
  });

  it('keeps the lead, and loses nothing, while NATS is away', async () => {
    const task = await runningTask('nats-away');
    await nats.kill();
    const answer = (): Promise<string> =>
      first.client.getTask({ taskId: 'nats-away' }).then(
        () => 'answered',
        (error) => error.reason,
      );
    await until('its lease runs out', async () => (await answer()) === 'NATS_UNAVAILABLE');
    await nats.start();
    await until('it answers again', async () => (await answer()) === 'answered');
    expect([await first.state(), await second.state()]).to.deep.equal(['ok', 'following']);
    task.go();
    expect((await groupOf(bus, 'nats-away')).sessions).to.have.length(4);
    await expectOneChain(1);
  });
});

describe('scheduler lease, one after another', () => {
  it('is taken at once by a scheduler that listens where the holder did', async () => {
    await using nats = await startNats();
    await using one = await spawnScheduler(nats.url);
    await one.client.submitTask({ spec: taskSpec('mine') });
    await one.kill();
    await one.start();
    expect(await one.state()).to.equal('ok');
    await one.client.getTask({ taskId: 'mine' });
  });
});
