// What becomes of sessions on request, with a real nats-server and a node that answers over NATS: cancel, retry, early stop,
// and how their end is told: long poll, resumed watch.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { Stragglers, type TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RetryOnly } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { SCHEDULER_TICK_MS } from '../../services/common/limits.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { failed, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  groupOf,
  sessionsOf,
  startScheduler,
  type TestScheduler,
  taskSpec,
  until,
} from '../support/scheduler.ts';

describe('scheduler attempts', () => {
  let nats: TestNats;
  let bus: Bus;
  let scheduler: TestScheduler;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    scheduler = await startScheduler(nats.url);
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  const restart = async (): Promise<void> => {
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url);
  };
  const submit = async (spec: TaskSpec): Promise<string[]> =>
    (await scheduler.client.submitTask({ spec })).sessionIds;
  const outcomes = async (taskId: string): Promise<string[]> =>
    (await sessionsOf(scheduler.client, taskId)).map(({ outcome }) => Outcome[outcome]);

  describe('cancel', () => {
    it('of one session ends it alone', async () => {
      await using node = await startFakeNode(nats.url, { on: { run: () => undefined } });
      const [first, second] = await submit(taskSpec('one-of-two', { numSamples: 2 }));
      await until('both run', () => node.taken.filter(({ kind }) => kind.case === 'run').length === 2);
      const { session } = await scheduler.client.cancelSession({ sessionId: first ?? '' });
      expect(session).to.include({ state: SessionState.ENDED, outcome: Outcome.CANCELLED });
      expect(session?.failure).to.include({ reason: 'CANCELLED', message: 'the session was cancelled' });
      const again = await scheduler.client.cancelSession({ sessionId: first ?? '' });
      expect(again.session?.endTime).to.deep.equal(session?.endTime);
      const other = await scheduler.client.getSession({ sessionId: second ?? '' });
      expect(other.session?.state).to.equal(SessionState.RUNNING);
      await until('its sandbox is revoked', () => node.sandboxes.size === 1);
      const unknown = await scheduler.client.cancelSession({ sessionId: 's-none-0' }).catch((error) => error);
      expect(unknown.reason).to.equal('NOT_FOUND');
      await scheduler.client.cancelTask({ taskId: 'one-of-two' });
    });

    it('of a task that is not there yet refuses its submit, through a restart', async () => {
      const { task } = await scheduler.client.cancelTask({ taskId: 'later', ahead: true });
      expect(task).to.equal(undefined);
      await restart();
      const refused = await scheduler.client.submitTask({ spec: taskSpec('later') }).catch((error) => error);
      expect(refused.reason).to.equal('TASK_CANCELLED');
      await submit(taskSpec('another'));
      const there = await scheduler.client.cancelTask({ taskId: 'another', ahead: true });
      expect(there.task?.sessionsByOutcome).to.deep.equal({ cancelled: 1 });
      const bad = await scheduler.client
        .cancelTask({ taskId: 'no/task', ahead: true })
        .catch((error) => error);
      expect(bad.reason).to.equal('INVALID_REQUEST');
    });

    it('ahead and submit at once leave no task that runs', async () => {
      const { client } = scheduler;
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, async (_, i) => {
          const submitted = client.submitTask({ spec: taskSpec(`race-${i}`) });
          await Promise.allSettled([submitted, client.cancelTask({ taskId: `race-${i}`, ahead: true })]);
          await submitted;
        }),
      );
      const { tasks } = await client.listTasks({ summary: true });
      const taken = new Set(tasks.map(({ taskId }) => taskId));
      expect(taken.size).to.equal(results.filter(({ status }) => status === 'fulfilled').length);
      for (const task of tasks) expect(task.sessionsByState).to.deep.equal({ ended: 1 });
    });
  });

  describe('retry', () => {
    it('gives infrastructure failures of an announced group new attempts, as a group of their own', async () => {
      await using node = await startFakeNode(nats.url);
      const { run } = node.on;
      let broken = true;
      node.on.run = (work) =>
        broken && work.ref?.sampleIndex !== 0 ? failed('run', 'ENGINE_UNAVAILABLE') : run(work);
      const ids = await submit(taskSpec('again', { numSamples: 3, maxAttempts: 2 }));
      const first = await groupOf(bus, 'again');
      expect(first.sessions.map(({ outcome }) => Outcome[outcome])).to.deep.equal([
        'COMPLETED',
        'INFRASTRUCTURE_ERROR',
        'INFRASTRUCTURE_ERROR',
      ]);
      broken = false;
      const retried = await scheduler.client.retrySessions({ taskId: 'again' });
      expect(retried.sessionIds).to.deep.equal(ids.slice(1));
      expect((await scheduler.client.retrySessions({ taskId: 'again' })).sessionIds).to.deep.equal([]);
      await until('all have completed', async () =>
        (await outcomes('again')).every((outcome) => outcome === 'COMPLETED'),
      );
      const second = await groupOf(bus, 'again', undefined, 'g1');
      expect(second.sessions.map(({ sessionId }) => sessionId)).to.deep.equal(ids.slice(1));
      for (const result of second.sessions) {
        expect(result).to.include({ attempt: 3, outcome: Outcome.COMPLETED, reward: 0.5 });
      }
      const [kept, session] = await sessionsOf(scheduler.client, 'again');
      expect(kept).to.include({ groupId: 'g0', attempt: 1 });
      expect(session).to.include({ groupId: 'g1', attempt: 3 });
      expect(session?.attempts.map(({ failure }) => failure?.reason)).to.deep.equal([
        'ENGINE_UNAVAILABLE',
        'ENGINE_UNAVAILABLE',
        undefined,
      ]);
      expect(
        session?.attempts.every(({ nodeId, endTime }) => nodeId === 'node-1' && endTime !== undefined),
      ).to.equal(true);
      const { task } = await scheduler.client.getTask({ taskId: 'again' });
      expect(task).to.include({ groupId: 'g1', meanReward: 0.5 });
      expect(task?.sessionsByOutcome).to.deep.equal({ completed: 3 });
    });

    it('counts attempts anew, and survives a restart in the middle', async () => {
      await using node = await startFakeNode(nats.url, {
        on: { run: () => failed('run', 'SANDBOX_FAILED') },
      });
      await submit(taskSpec('twice', { maxAttempts: 2 }));
      await groupOf(bus, 'twice');
      node.on.run = () => undefined;
      await scheduler.client.retrySessions({ taskId: 'twice' });
      await until('the third attempt runs', async () => {
        const [session] = await sessionsOf(scheduler.client, 'twice');
        return session?.attempt === 3 && session.state === SessionState.RUNNING;
      });
      await restart();
      const [session] = await sessionsOf(scheduler.client, 'twice');
      expect(session).to.include({ attempt: 3, groupId: 'g1', outcome: Outcome.UNSPECIFIED });
      node.on.run = () => failed('run', 'SANDBOX_FAILED');
      const ref = node.taken.find(({ ref, kind }) => ref?.attempt === 3 && kind.case === 'run')?.ref;
      await node.fact(ref!, failed('run', 'SANDBOX_FAILED'));
      const [result] = (await groupOf(bus, 'twice', undefined, 'g1')).sessions;
      expect(result).to.include({ attempt: 4, outcome: Outcome.INFRASTRUCTURE_ERROR });
    });

    it('chooses by what failed, and adds to a group that is not announced yet', async () => {
      await using node = await startFakeNode(nats.url, { runSlots: 8, prepareSlots: 8, readySlots: 8 });
      const { run } = node.on;
      node.on.run = (work) => {
        switch (work.ref?.sampleIndex) {
          case 0:
            return { case: 'ran', value: { outcome: Outcome.HARNESS_ERROR, exitCode: 1 } };
          case 1:
            return failed('run', 'SANDBOX_FAILED');
          case 2:
            return undefined;
          default:
            return run(work);
        }
      };
      const ids = await submit(taskSpec('mixed', { numSamples: 4, maxAttempts: 1 }));
      await scheduler.client.cancelSession({ sessionId: ids[3] ?? '' });
      await until(
        'three have ended',
        async () =>
          (await outcomes('mixed')).join() === 'HARNESS_ERROR,INFRASTRUCTURE_ERROR,UNSPECIFIED,CANCELLED',
      );
      node.on.run = run;
      const retry = async (only: RetryOnly) =>
        (await scheduler.client.retrySessions({ taskId: 'mixed', only })).sessionIds;
      expect(await retry(RetryOnly.MISSING)).to.deep.equal([ids[1], ids[3]]);
      expect(await retry(RetryOnly.FAILED)).to.deep.equal([ids[0]]);
      await scheduler.client.cancelSession({ sessionId: ids[2] ?? '' });
      const group = await groupOf(bus, 'mixed');
      expect(group.sessions.map(({ outcome }) => Outcome[outcome])).to.deep.equal([
        'COMPLETED',
        'COMPLETED',
        'CANCELLED',
        'COMPLETED',
      ]);
    });

    it('adds nothing to a group that is complete, be it by an end on its way into the log', async () => {
      const { client } = scheduler;
      const names = Array.from({ length: 64 }, (_, i) => `close-${i}`);
      const specs = names.map((taskId) => ({ spec: taskSpec(taskId, { numSamples: 2 }) }));
      const { tasks } = await client.submitTasks({ tasks: specs });
      const nth = (i: number) =>
        tasks.map(({ sessionIds, task }) => ({
          sessionId: sessionIds[i] ?? '',
          taskId: task?.taskId ?? '',
        }));
      await Promise.all(nth(0).map(({ sessionId }) => client.cancelSession({ sessionId })));
      await Promise.all(
        nth(1).flatMap(({ sessionId, taskId }) => [
          client.retrySessions({ taskId, only: RetryOnly.MISSING }),
          client.cancelSession({ sessionId }),
        ]),
      );
      for (const { sessionId, taskId } of nth(0)) {
        const { session } = await client.getSession({ sessionId });
        expect(session?.state, taskId).to.equal(SessionState.QUEUED);
        const subject = subjects.trajectory(taskId, session?.groupId ?? '');
        const stored = bus.direct.getMessage(STREAMS.trajectories.name, { last_by_subj: subject });
        expect(await stored.catch(() => 'to come'), taskId).to.equal('to come');
      }
    });
  });

  describe('early stop', () => {
    it('ends what is left when enough sessions are usable, each once', async () => {
      await using node = await startFakeNode(nats.url, { runSlots: 8, prepareSlots: 8, readySlots: 8 });
      const { run, build } = node.on;
      node.on.run = (work) => ((work.ref?.sampleIndex ?? 0) < 3 ? run(work) : undefined);
      node.on.build = async (work) => {
        const built = await build(work);
        const trainedTokens = work.ref?.sampleIndex === 0 ? 0n : 7n;
        return { case: 'built', value: { ...(built?.value as object), stats: { traces: 1, trainedTokens } } };
      };
      const earlyStop = { minUsableSessions: 2, grace: durationFromMs(100) };
      await submit(taskSpec('early', { numSamples: 6, earlyStop }));
      const group = await groupOf(bus, 'early');
      expect(group.sessions.map(({ outcome }) => Outcome[outcome])).to.deep.equal([
        'COMPLETED',
        'COMPLETED',
        'COMPLETED',
        'CANCELLED',
        'CANCELLED',
        'CANCELLED',
      ]);
      for (const { failure } of group.sessions.slice(3)) expect(failure?.reason).to.equal('EARLY_STOPPED');
      await until('all sandboxes are revoked', () => node.sandboxes.size === 0);
      const missing = await scheduler.client.retrySessions({ taskId: 'early', only: RetryOnly.MISSING });
      expect(missing.sessionIds).to.deep.equal([]);
    });

    it('carries over what is left, where the task says so: a group of its own, announced when it has ended', async () => {
      await using node = await startFakeNode(nats.url, { runSlots: 3, prepareSlots: 3, readySlots: 0 });
      const { run, build } = node.on;
      node.on.run = (work) => ((work.ref?.sampleIndex ?? 0) < 2 ? run(work) : undefined);
      node.on.build = async (work) => {
        const built = await build(work);
        return { case: 'built', value: { ...(built?.value as object), stats: { trainedTokens: 7n } } };
      };
      const earlyStop = { minUsableSessions: 2, stragglers: Stragglers.CARRY_OVER };
      await submit(taskSpec('carried', { numSamples: 6, earlyStop }));
      const first = await groupOf(bus, 'carried');
      expect(first.sessions.map(({ sampleIndex }) => sampleIndex)).to.deep.equal([0, 1]);
      expect(first.carriedOverSessions).to.equal(4);
      const sessions = await sessionsOf(scheduler.client, 'carried');
      expect(sessions.map(({ groupId }) => groupId)).to.deep.equal(['g0', 'g0', 'g1', 'g1', 'g1', 'g1']);
      expect(sessions.map(({ outcome }) => Outcome[outcome]).slice(2)).to.deep.equal(
        Array.from({ length: 4 }, () => 'UNSPECIFIED'),
      );
      await restart();
      await until(
        'three of them run',
        () => node.taken.filter(({ kind }) => kind.case === 'run').length === 5,
      );
      node.on.run = run;
      for (const { ref } of node.taken.filter(({ kind }) => kind.case === 'run').slice(2)) {
        await node.fact(ref!, { case: 'ran', value: { outcome: Outcome.COMPLETED } });
      }
      const second = await groupOf(bus, 'carried', undefined, 'g1');
      expect(second.sessions.map(({ sampleIndex }) => sampleIndex)).to.deep.equal([2, 3, 4, 5]);
      expect(second.sessions.map(({ attempt }) => attempt)).to.deep.equal([1, 1, 1, 1]);
      expect(second.carriedOverSessions).to.equal(0);
    });

    it('happens after a restart too', async () => {
      await using node = await startFakeNode(nats.url);
      const { run, build } = node.on;
      node.on.run = (work) => (work.ref?.sampleIndex === 0 ? run(work) : undefined);
      node.on.build = async (work) => {
        const built = await build(work);
        return { case: 'built', value: { ...(built?.value as object), stats: { trainedTokens: 1n } } };
      };
      const earlyStop = { minUsableSessions: 1, grace: durationFromMs(1_000) };
      await submit(taskSpec('early-restart', { numSamples: 2, earlyStop }));
      await until('one has ended', async () => (await outcomes('early-restart'))[0] === 'COMPLETED');
      await restart();
      expect(await outcomes('early-restart')).to.deep.equal(['COMPLETED', 'UNSPECIFIED']);
      const group = await groupOf(bus, 'early-restart');
      expect(group.sessions[1]?.failure?.reason).to.equal('EARLY_STOPPED');
    });
  });

  it('are not given up where the wall clock is set to another hour', async () => {
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url, { stageGraceMs: 100 });
    await using node = await startFakeNode(nats.url, { on: { run: () => undefined } });
    const [sessionId = ''] = await submit(taskSpec('jump'));
    const present = async () => (await scheduler.client.getSession({ sessionId })).session;
    await until('it runs', async () => (await present())?.state === SessionState.RUNNING);
    await sleep(150);
    const { now } = Date;
    try {
      for (const byMs of [3_600_000, -3_600_000]) {
        Date.now = () => now() + byMs;
        await sleep(2 * SCHEDULER_TICK_MS + 50);
        expect(await present()).to.include({ state: SessionState.RUNNING, attempt: 1 });
      }
      // Behind the clock that it was dispatched by, its next attempt waits no longer than it has to.
      await node.fact(node.taken.at(-1)!.ref!, failed('run', 'SANDBOX_FAILED'));
      await until('it runs again', async () => (await present())?.attempt === 2, 5_000);
    } finally {
      Date.now = now;
    }
  });

  describe('telling', () => {
    it('answers a long poll when all have ended, or when its time is over', async () => {
      await submit(taskSpec('polled', { numSamples: 2 }));
      const ask = (ms: number) =>
        scheduler.client.getTask({ taskId: 'polled', wait: durationFromMs(ms), summary: true });
      const early = await ask(50);
      expect(early.task?.sessionsByState).to.deep.equal({ queued: 2 });
      expect(early.task?.spec).to.equal(undefined);
      expect(early.task?.taskId).to.equal('polled');
      const polling = ask(60_000);
      await using _node = await startFakeNode(nats.url);
      expect((await polling).task?.sessionsByState).to.deep.equal({ ended: 2 });
      const refused = await ask(60_001).catch((error) => error);
      expect(refused.reason).to.equal('INVALID_REQUEST');
    });

    it('says to a watch that the scheduler stops: that is not the end of the task', async () => {
      await submit(taskSpec('goes-on'));
      const watch = scheduler.client.watchTask({ taskId: 'goes-on' })[Symbol.asyncIterator]();
      expect((await watch.next()).value?.session?.state).to.equal(SessionState.QUEUED);
      const next = watch.next().catch((error) => error);
      await restart();
      expect(asPolarError(await next)).to.include({ reason: 'SHUTTING_DOWN', retryable: true });
    });

    it('goes on with a watch where it was cut, through a restart', async () => {
      const ids = await submit(taskSpec('watched', { numSamples: 3 }));
      await scheduler.client.cancelSession({ sessionId: ids[1] ?? '' });
      let cursor = '';
      const seen: string[] = [];
      for await (const answer of scheduler.client.watchTask({ taskId: 'watched', summary: true })) {
        seen.push(answer.session?.sessionId ?? '');
        cursor = answer.cursor;
        expect(answer.task?.spec).to.equal(undefined);
        if (seen.length === 3) break;
      }
      expect(seen).to.deep.equal([ids[0], ids[2], ids[1]]);
      await restart();
      await scheduler.client.cancelSession({ sessionId: ids[2] ?? '' });
      const later: string[] = [];
      for await (const answer of scheduler.client.watchTask({ taskId: 'watched', resumeCursor: cursor })) {
        if (answer.session !== undefined) later.push(answer.session.sessionId);
        if (later.length === 1) await scheduler.client.cancelSession({ sessionId: ids[0] ?? '' });
      }
      expect(later).to.deep.equal([ids[2], ids[0]]);
      const again: string[] = [];
      for await (const { session } of scheduler.client.watchTask({
        taskId: 'watched',
        resumeCursor: '999999',
      })) {
        if (session !== undefined) again.push(session.sessionId);
      }
      expect(again).to.have.members(ids);
    });
  });
});
