// Who is next, with a real nats-server and nodes that answer over NATS: shares of queues, priorities, caps, drains, and
// what a session that waits is told.
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { BudgetsSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { ChangeSchema } from '../../gen/ts/polar/event/v1/state_pb.js';
import { WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { Semaphore, sleep } from '../../services/common/clock.ts';
import { BUILDS_AT_ONCE_MAX, QUEUES_REMEMBERED_MAX } from '../../services/common/limits.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { openStateLog } from '../../services/scheduler/journal/state-log.ts';
import { type FakeNode, failed, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  groupOf,
  sessionsOf,
  startScheduler,
  type TestScheduler,
  taskSpec,
  until,
} from '../support/scheduler.ts';

const ENGINE = 'http://127.0.0.1:9';
const TOPOLOGY = {
  rollout: {
    queues: [
      { name: 'heavy', weight: 3 },
      { name: 'light', weight: 1 },
      { name: 'capped', max_running: 2 },
    ],
  },
  gateway: {
    nodes: ['node-1', 'node-2'].map((id) => ({ id, inference: { base_url: ENGINE, max_sessions: 3 } })),
  },
};

describe('scheduler queues', () => {
  let nats: TestNats;
  let bus: Bus;
  let scheduler: TestScheduler;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    scheduler = await startScheduler(nats.url, {}, TOPOLOGY);
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  const submit = async (spec: TaskSpec): Promise<string[]> =>
    (await scheduler.client.submitTask({ spec })).sessionIds;
  const waiting = async (sessionId: string | undefined) =>
    (await scheduler.client.getSession({ sessionId: sessionId ?? '' })).waiting;
  const known = (node: FakeNode): Promise<void> =>
    until('the node is known', async () =>
      (await scheduler.client.listNodes({})).nodes.some(({ nodeId }) => nodeId === node.id),
    );
  const states = async (taskId: string, state: SessionState): Promise<number> =>
    (await sessionsOf(scheduler.client, taskId)).filter((session) => session.state === state).length;
  const queue = async (name: string) =>
    (await scheduler.client.listQueues({})).queues.find((one) => one.name === name);

  /** A node on which runs last until they are told to end. */
  async function heldNode(more: object = {}): Promise<FakeNode & { end(): void }> {
    const ends: (() => void)[] = [];
    const node = await startFakeNode(nats.url, more);
    const { run } = node.on;
    node.on.run = async (work) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return await run(work);
    };
    const dispose = node[Symbol.asyncDispose].bind(node);
    return Object.assign(node, {
      end: () => ends.shift()?.(),
      async [Symbol.asyncDispose]() {
        node.on.run = run;
        for (const end of ends) end();
        await dispose();
      },
    });
  }

  it('share run time by weight, and give the light one its part', async function () {
    this.timeout(120_000);
    await using node = await startFakeNode(nats.url, {
      id: 'node-9',
      ...{ prepareSlots: 2, runSlots: 4, readySlots: 2, evaluateSlots: 64 },
    });
    const { run } = node.on;
    node.on.run = async (work) => {
      await sleep(20);
      return await run(work);
    };
    const load = (name: string, numSamples: number): TaskSpec => taskSpec(name, { queue: name, numSamples });
    const used = async (): Promise<number[]> => {
      const both = await Promise.all([queue('heavy'), queue('light')]);
      return both.map((one) => one?.runSeconds ?? 0);
    };
    await Promise.all([submit(load('heavy', 1_000)), submit(load('light', 500))]);
    // What ran before the other was there is no part of sharing, and is not made up for.
    const alone = await used();
    // Both queues have more than they can run until then.
    const ended = async (): Promise<number> => {
      const tasks = await Promise.all(
        ['heavy', 'light'].map((taskId) => scheduler.client.getTask({ taskId, summary: true })),
      );
      return tasks.reduce((sum, { task }) => sum + (task?.sessionsByState['ended'] ?? 0), 0);
    };
    await until('many have run', async () => (await ended()) >= 1_000, 100_000);
    const [heavy = 0, light = 1] = (await used()).map((seconds, i) => seconds - (alone[i] ?? 0));
    expect((await queue('heavy'))?.waiting).to.be.greaterThan(0);
    expect(heavy / light).to.be.within(2.85, 3.15);
  });

  it('keep their run time over a take-over', async () => {
    await using node = await startFakeNode(nats.url, { runSlots: 4, readySlots: 4 });
    const { run } = node.on;
    node.on.run = async (work) => {
      await sleep(20);
      return await run(work);
    };
    await submit(taskSpec('before', { queue: 'heavy', numSamples: 6 }));
    await groupOf(bus, 'before');
    const used = (await queue('heavy'))?.runSeconds ?? 0;
    expect(used).to.be.greaterThan(0);
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, {}, TOPOLOGY);
    await scheduler.leading;
    expect((await queue('heavy'))?.runSeconds).to.be.closeTo(used, 1e-9);
    await submit(taskSpec('after', { queue: 'heavy', numSamples: 6 }));
    await groupOf(bus, 'after');
    expect((await queue('heavy'))?.runSeconds).to.be.greaterThan(used);
  });

  it('keep it too where many others that the topology does not name have run since', async () => {
    await scheduler[Symbol.asyncDispose]();
    const common = { bus, blobs: createBlobStore(bus), log: createLogger('test', 'silent'), holder: 'test' };
    const hooks = { signal: new AbortController().signal, onCommitted: () => {}, onFailed: () => {} };
    const { journal } = await openStateLog({ ...common, ...hooks });
    const others = Array.from({ length: QUEUES_REMEMBERED_MAX }, (_, i) => `q-${i}`);
    const changes = ['heavy', ...others].map((name) => {
      const value = { queue: name, runMs: 3_000n, runs: 2n };
      return create(ChangeSchema, { kind: { case: 'queueUsed', value } });
    });
    await journal.proposeAtOnce(changes);
    scheduler = await startScheduler(nats.url, {}, TOPOLOGY);
    await scheduler.leading;
    expect((await queue('heavy'))?.runSeconds).to.equal(3);
  });

  it('starts a late urgent task next', async () => {
    await using node = await heldNode({ prepareSlots: 1, runSlots: 1, readySlots: 1 });
    await submit(taskSpec('early', { numSamples: 6 }));
    await until('one runs and one is ready', async () => (await states('early', SessionState.READY)) === 1);
    const before = node.taken.length;
    const [urgent] = await submit(taskSpec('urgent', { dispatchPriority: 100 }));
    node.end();
    await until('two more are prepared', async () => {
      node.end();
      return node.taken.filter(({ kind }) => kind.case === 'prepare').length >= 4;
    });
    const next = node.taken.slice(before).filter(({ kind }) => kind.case === 'prepare');
    expect(next[0]?.ref?.sessionId).to.equal(urgent);
    await scheduler.client.cancelTask({ taskId: 'early' });
    node.end();
  });

  it('run no more of a task, of a queue, of an engine than their caps, and say so', async () => {
    await using one = await heldNode({ id: 'node-1', prepareSlots: 8, runSlots: 8, readySlots: 8 });
    await using two = await heldNode({ id: 'node-2', prepareSlots: 8, runSlots: 8, readySlots: 8 });
    await Promise.all([known(one), known(two)]);
    const ofTask = await submit(taskSpec('task-cap', { numSamples: 4, maxRunningSessions: 1 }));
    const ofQueue = await submit(taskSpec('queue-cap', { numSamples: 4, queue: 'capped' }));
    await until('three run', async () => {
      const counts = [states('task-cap', SessionState.RUNNING), states('queue-cap', SessionState.RUNNING)];
      return (await Promise.all(counts)).join() === '1,2';
    });
    expect(await waiting(ofTask[3])).to.include({ reason: WaitReason.TASK_CAP });
    expect(await waiting(ofQueue[3])).to.include({ reason: WaitReason.QUEUE_CAP });
    const [free] = await submit(taskSpec('engine-cap'));
    await until('it waits for the engine that both nodes share', async () => {
      const reason = (await waiting(free))?.reason;
      return reason === WaitReason.ENGINE_CAP;
    });
    expect((await waiting(free))?.message).to.include(ENGINE);
    expect(await queue('capped')).to.include({ running: 2, waiting: 2, maxRunning: 2 });
    await until('all have run', async () => {
      one.end();
      two.end();
      const counts = await Promise.all(
        ['task-cap', 'queue-cap', 'engine-cap'].map((id) => states(id, SessionState.ENDED)),
      );
      return counts.join() === '4,4,1';
    });
    expect((await scheduler.client.listQueues({})).queues.map(({ name }) => name)).to.deep.equal([
      'capped',
      'heavy',
      'light',
    ]);
  });

  it('run what was ready first on nodes that share an engine, whichever node that is on', async () => {
    await using one = await heldNode({ id: 'node-1' });
    await known(one);
    await submit(taskSpec('fill', { numSamples: 3 }));
    await until('the engine is full', async () => (await states('fill', SessionState.RUNNING)) === 3);
    await using two = await heldNode({ id: 'node-2' });
    await known(two);
    for (const [taskId, closed, open] of [
      ['sooner', one, two],
      ['later', two, one],
    ] as const) {
      await scheduler.client.drainNode({ nodeId: closed.id });
      await scheduler.client.drainNode({ nodeId: open.id, undo: true });
      await submit(taskSpec(taskId));
      await until('it is ready', async () => (await states(taskId, SessionState.READY)) === 1);
    }
    const run = (node: FakeNode) => node.taken.filter(({ kind }) => kind.case === 'run').length;
    one.end();
    await until('one more runs', () => run(one) + run(two) === 4);
    expect(run(two)).to.equal(1);
    expect(await states('later', SessionState.READY)).to.equal(1);
  });

  it('say why a session waits: no node, none that fits, a pause, a full node, a run slot', async () => {
    const [lonely] = await submit(taskSpec('lonely'));
    expect((await waiting(lonely))?.reason).to.equal(WaitReason.NO_NODE);
    const [unfit] = await submit(taskSpec('unfit', { runtime: { backend: 'process' } }));
    await using node = await heldNode({
      backends: ['bubblewrap'],
      ...{ prepareSlots: 1, runSlots: 1, readySlots: 1 },
    });
    await until('it runs', async () => (await states('lonely', SessionState.RUNNING)) === 1);
    expect((await waiting(lonely))?.reason).to.equal(undefined);
    const none = await waiting(unfit);
    expect(none?.reason).to.equal(WaitReason.NO_NODE_FITS);
    expect(none?.message).to.include('process');

    const many = await submit(taskSpec('many', { numSamples: 3 }));
    await until('one is ready', async () => (await states('many', SessionState.READY)) === 1);
    expect((await waiting(many[0]))?.reason).to.equal(WaitReason.RUN_SLOT);
    expect(await waiting(many[2])).to.include({ reason: WaitReason.NODES_FULL, ahead: 1 });
    await scheduler.client.cancelTask({ taskId: 'many' });

    node.on.prepare = () => failed('prepare', 'SANDBOX_FAILED');
    const [again] = await submit(taskSpec('again', { maxAttempts: 10 }));
    await until('it waits for its next attempt', async () => {
      const now = await waiting(again);
      return now?.reason === WaitReason.RETRY_PAUSE && now.untilTime !== undefined;
    });
    await scheduler.client.cancelTask({ taskId: 'again' });
    node.end();
  });

  it('give a drained node nothing new, through a restart of the scheduler, until it is taken back', async () => {
    await using node = await heldNode();
    const runs = (): number => node.taken.filter(({ kind }) => kind.case === 'run').length;
    const [first] = await submit(taskSpec('before'));
    await until('it runs', () => runs() === 1);
    const { node: drained } = await scheduler.client.drainNode({ nodeId: node.id });
    expect(drained).to.include({ draining: true, healthy: true });
    node.end();
    await groupOf(bus, 'before');
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, {}, TOPOLOGY);
    await known(node);
    const [held] = await submit(taskSpec('held'));
    expect((await waiting(held))?.reason).to.equal(WaitReason.NODES_DRAINING);
    expect((await scheduler.client.listNodes({})).nodes[0]?.draining).to.equal(true);
    await scheduler.client.drainNode({ nodeId: node.id, undo: true });
    await until('it runs', () => runs() === 2);
    node.end();
    await groupOf(bus, 'held');
    expect(first).to.not.equal(held);
    const unknown = await scheduler.client.drainNode({ nodeId: 'none' }).catch((error) => error);
    expect(unknown.reason).to.equal('NOT_FOUND');
  });

  it('drain a node that is not heard yet by a scheduler that has just taken over', async () => {
    const drained = scheduler.client.drainNode({ nodeId: 'node-1' });
    drained.catch(() => {});
    await using _node = await startFakeNode(nats.url);
    expect((await drained).node).to.include({ nodeId: 'node-1', draining: true, healthy: true });
  });

  it('end a session whose time in the queue is spent, as an infrastructure failure', async () => {
    const budgets = create(BudgetsSchema, { queue: durationFromMs(200) });
    await submit(taskSpec('impatient', { numSamples: 2, budgets }));
    await submit(taskSpec('patient'));
    const group = await groupOf(bus, 'impatient');
    expect(group.sessions.map(({ failure }) => failure?.reason)).to.deep.equal([
      'QUEUE_TIMEOUT',
      'QUEUE_TIMEOUT',
    ]);
    expect(group.sessions[0]?.failure?.infrastructure).to.equal(true);
    expect(await states('patient', SessionState.QUEUED)).to.equal(1);
  });

  it('give an attempt up whose time in READY is spent, and try again', async () => {
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, { stageGraceMs: 0 }, TOPOLOGY);
    await using node = await heldNode({ prepareSlots: 4, runSlots: 1, readySlots: 4 });
    await submit(taskSpec('runs'));
    await until('it runs', async () => (await states('runs', SessionState.RUNNING)) === 1);
    const budgets = create(BudgetsSchema, { ready: durationFromMs(300) });
    await submit(taskSpec('ready', { budgets, maxAttempts: 5 }));
    await until('its first attempt is over', async () => {
      const [session] = await sessionsOf(scheduler.client, 'ready');
      return session?.attempts[0]?.failure?.reason === 'STAGE_TIMEOUT';
    });
    const [session] = await sessionsOf(scheduler.client, 'ready');
    const [attempt] = session?.attempts ?? [];
    expect(Number(attempt?.times?.readyMs)).to.be.at.least(300);
    const lasted = timestampMs(attempt!.endTime!) - timestampMs(attempt!.startTime!);
    expect(lasted).to.be.at.least(300);
    await scheduler.client.cancelTask({ taskId: 'ready' });
    node.end();
  });

  it('count no time against a session that waits to be graded, and all of it against a grading that says nothing', async () => {
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, { stageGraceMs: 500 }, TOPOLOGY);
    await using node = await startFakeNode(nats.url, { runSlots: 4, evaluateSlots: 1 });
    const { evaluate } = node.on;
    const slot = new Semaphore(1);
    let graded = 0;
    node.on.evaluate = (work) =>
      slot.run(async () => {
        await sleep(1_200);
        // The last one's first grading never answers.
        return ++graded === 4 ? undefined : await evaluate(work);
      });
    const budgets = create(BudgetsSchema, { evaluate: durationFromMs(3_000) });
    await submit(taskSpec('graded', { budgets, numSamples: 4, maxAttempts: 2 }));
    const { sessions } = await groupOf(bus, 'graded');
    expect(sessions.map(({ reward }) => reward)).to.deep.equal([0.5, 0.5, 0.5, 0.5]);
    expect(sessions.map(({ attempt }) => attempt).sort()).to.deep.equal([1, 1, 1, 2]);
    const ended = await sessionsOf(scheduler.client, 'graded');
    const lost = ended.flatMap(({ attempts }) => attempts).filter(({ failure }) => failure !== undefined);
    expect(lost.map(({ failure }) => failure?.reason)).to.deep.equal(['STAGE_TIMEOUT']);
  });

  it('count no time against a session that waits to be built', async () => {
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, { stageGraceMs: 1_500 }, TOPOLOGY);
    await using node = await startFakeNode(nats.url, { id: 'node-9', prepareSlots: 12, runSlots: 12 });
    const { build } = node.on;
    const builders = new Semaphore(BUILDS_AT_ONCE_MAX);
    node.on.build = (work) =>
      builders.run(async () => {
        // All of them take longer than one may, and each much shorter.
        await sleep(750);
        return await build(work);
      });
    const budgets = create(BudgetsSchema, { build: durationFromMs(500) });
    await submit(taskSpec('built', { budgets, numSamples: 12 }));
    const { sessions } = await groupOf(bus, 'built');
    expect(sessions.map(({ attempt }) => attempt)).to.deep.equal(Array(12).fill(1));
  });
});
