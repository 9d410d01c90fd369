// The wall clock of a scheduler that is set, or goes on without it while the machine sleeps: no stage ends by that, and none
// is held up by it.
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { BudgetsSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { PauseMode } from '../../gen/ts/polar/event/v1/policy_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { PolicyWatch } from '../../services/common/nats/policy.ts';
import { pausing, resumed } from '../../services/llm-proxy/domain/policy.ts';
import { clockFlags } from '../support/clock-flags.ts';
import { failed, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  groupOf,
  sessionsOf,
  spawnScheduler,
  startScheduler,
  type TestScheduler,
  taskSpec,
  until,
} from '../support/scheduler.ts';

const HOUR_MS = 3_600_000;
const { now } = Date;

describe('scheduler: a wall clock that is set', () => {
  let nats: TestNats;
  let bus: Bus;
  let setByMs = 0;
  let stop: AbortController;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    stop = new AbortController();
    setByMs = 0;
    Date.now = () => now() + setByMs;
  });
  afterEach(async () => {
    Date.now = now;
    stop.abort();
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  /** Who leads answers again when it has renewed its lease by the clock that was set. */
  const setClock = async ({ client }: TestScheduler, byMs: number): Promise<void> => {
    setByMs = byMs;
    const answers = () =>
      client.listNodes({}).then(
        () => true,
        () => false,
      );
    await until('it leads by that clock', answers);
  };

  for (const byMs of [9 * HOUR_MS, -9 * HOUR_MS]) {
    it(`by ${byMs / HOUR_MS} hours ends no stage that has time, and every one that has none`, async () => {
      await using node = await startFakeNode(nats.url, { on: { run: () => undefined } });
      await using scheduler = await startScheduler(nats.url, { stageGraceMs: 200 });
      const { client } = scheduler;
      const budgets = (runMs: number) => ({
        budgets: create(BudgetsSchema, { run: durationFromMs(runMs), queue: durationFromMs(60_000) }),
      });
      await client.submitTask({ spec: taskSpec('long', budgets(60_000)) });
      await client.submitTask({ spec: taskSpec('short', { ...budgets(3_000), maxAttempts: 1 }) });
      const runs = (): number => node.taken.filter(({ kind }) => kind.case === 'run').length;
      await until('both run', () => runs() === 2);
      await setClock(scheduler, byMs);
      await client.submitTask({ spec: taskSpec('late', { ...budgets(1_000), maxAttempts: 1 }) });
      for (const taskId of ['short', 'late']) {
        const { outcome, failure } = (await groupOf(bus, taskId)).sessions[0] ?? {};
        expect(outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
        expect(failure?.reason, taskId).to.equal('STAGE_TIMEOUT');
      }
      await sleep(500);
      const [session] = await sessionsOf(client, 'long');
      expect(session).to.deep.include({ state: SessionState.RUNNING, attempt: 1 });
    });

    it(`by ${byMs / HOUR_MS} hours at the scheduler that led before makes no stage shorter or longer`, async () => {
      await using node = await startFakeNode(nats.url, { on: { run: () => undefined } });
      await using before = await spawnScheduler(nats.url, {}, clockFlags(byMs));
      const running = (taskId: string, runMs: number) => {
        const budgets = create(BudgetsSchema, { run: durationFromMs(runMs) });
        return before.client.submitTask({ spec: taskSpec(taskId, { budgets, maxAttempts: 1 }) });
      };
      await running('long', 60_000);
      await running('short', 5_000);
      const runs = (): number => node.taken.filter(({ kind }) => kind.case === 'run').length;
      await until('both run', () => runs() === 2);
      await before.kill();
      await using scheduler = await startScheduler(nats.url, { stageGraceMs: 200 });
      await scheduler.leading;
      const session = async (taskId: string) => (await sessionsOf(scheduler.client, taskId))[0];
      await until('one is late', async () => (await session('short'))?.failure?.reason === 'STAGE_TIMEOUT');
      expect(await session('long')).to.deep.include({ state: SessionState.RUNNING, attempt: 1 });
    });

    it(`by ${byMs / HOUR_MS} hours keeps no node from sessions for longer than it is paused`, async () => {
      await using node = await startFakeNode(nats.url);
      await using scheduler = await startScheduler(nats.url);
      const { client } = scheduler;
      const { prepare } = node.on;
      node.on.prepare = () => failed('prepare', 'SANDBOX_FAILED', 'ENOSPC');
      await client.submitTask({ spec: taskSpec('lost', { numSamples: 4, maxAttempts: 4 }) });
      const failures = async () => (await client.listNodes({})).nodes[0]?.failures;
      await until('it is paused', async () => (await failures())?.pausedUntilTime !== undefined);
      await setClock(scheduler, byMs);
      node.on.prepare = prepare;
      await until('it has sessions again', async () => (await failures()) === undefined);
    });

    it(`by ${byMs / HOUR_MS} hours makes no run long for its queue`, async () => {
      await using node = await startFakeNode(nats.url);
      const rollout = { queues: [{ name: 'mine' }] };
      await using scheduler = await startScheduler(nats.url, {}, { rollout });
      const { client } = scheduler;
      const isSet = Promise.withResolvers<void>();
      const { run } = node.on;
      node.on.run = async (work) => {
        await isSet.promise;
        return await run(work);
      };
      await client.submitTask({ spec: taskSpec('first', { queue: 'mine' }) });
      await until('it runs', () => node.taken.some(({ kind }) => kind.case === 'run'));
      await setClock(scheduler, byMs);
      isSet.resolve();
      await groupOf(bus, 'first');
      const { queues } = await client.listQueues({});
      expect(queues.find(({ name }) => name === 'mine')?.runSeconds).to.be.within(0, 60);
    });

    it(`by ${byMs / HOUR_MS} hours at the LLM proxy that pauses, holds runs back all the same`, async () => {
      await using _ = await startFakeNode(nats.url, { on: { run: () => undefined } });
      await using scheduler = await startScheduler(nats.url, { stageGraceMs: 200 });
      const { client } = scheduler;
      const { signal } = stop;
      const policy = await PolicyWatch.open({ bus, signal });
      const budgets = create(BudgetsSchema, { run: durationFromMs(4_000) });
      await client.submitTask({ spec: taskSpec('held', { budgets, maxAttempts: 1 }) });
      const session = async () => (await sessionsOf(client, 'held'))[0];
      await until('it runs', async () => (await session())?.state === SessionState.RUNNING);
      const pause = { id: 'p', mode: PauseMode.DRAIN, nowMs: now() + byMs, ttlMs: HOUR_MS };
      await policy.update((known) => pausing(known, pause), signal);
      await sleep(5_000);
      expect((await session())?.state).to.equal(SessionState.RUNNING);
      await policy.update((known) => resumed(known, 'p', 5_000), signal);
      await until('it is late', async () => (await session())?.failure?.reason === 'STAGE_TIMEOUT');
    });
  }
});
