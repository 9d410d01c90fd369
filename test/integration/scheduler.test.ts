// The scheduler against a real nats-server, with a node that answers work over NATS: the way of a session and
// what becomes of it when parts of it fail.
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { ATTEMPT_BACKOFF_MS } from '../../services/common/limits.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
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

describe('scheduler', () => {
  let nats: TestNats;
  let bus: Bus;
  let scheduler: TestScheduler;
  // A server for each test: a node that ended is taken for healthy until its heartbeats are overdue.
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

  describe('the way of a session', () => {
    it('goes from submit to an announced group, through one node', async () => {
      await using node = await startFakeNode(nats.url);
      const spec = taskSpec('happy', {
        numSamples: 4,
        metadata: { split: 'train' },
        sampling: { seedBase: 40 },
      });
      const { task, sessionIds } = await scheduler.client.submitTask({ spec });
      expect(task?.sessionsByState).to.deep.equal({ queued: 4 });
      expect(new Set(sessionIds).size).to.equal(4);

      const group = await groupOf(bus, 'happy');
      expect(group.metadata).to.deep.equal({ split: 'train' });
      expect(group.sessions.map((one) => one.sessionId)).to.deep.equal(sessionIds);
      for (const result of group.sessions) {
        expect(result).to.include({ attempt: 1, outcome: Outcome.COMPLETED, reward: 0.5 });
        expect(result.evaluation).to.deep.equal({ passed: 3 });
        expect(Number(result.trajectory?.sizeBytes)).to.be.greaterThan(0);
        expect(result.stats?.calls).to.equal(2);
      }

      const after = await scheduler.client.getTask({ taskId: 'happy' });
      expect(after.task?.sessionsByState).to.deep.equal({ ended: 4 });
      expect(after.task?.sessionsByOutcome).to.deep.equal({ completed: 4 });
      expect(after.task?.meanReward).to.equal(0.5);
      expect(after.task?.endTime).to.not.equal(undefined);

      const works = node.taken.filter(({ ref }) => ref?.sessionId === sessionIds[1]);
      expect(works.map(({ kind }) => kind.case).slice(0, 2)).to.deep.equal(['prepare', 'run']);
      expect(works.map(({ kind }) => kind.case).sort()).to.deep.equal([
        'build',
        'evaluate',
        'prepare',
        'run',
      ]);
      const run = works.find(({ kind }) => kind.case === 'run')?.kind.value as {
        sampling?: { seedBase?: number };
      };
      expect(run.sampling?.seedBase).to.equal(41);
      await until('all sandboxes are revoked', () => node.sandboxes.size === 0);
    });

    it('keeps times and the attempt of each stage', async () => {
      await using _node = await startFakeNode(nats.url);
      const { sessionIds } = await scheduler.client.submitTask({ spec: taskSpec('times') });
      await groupOf(bus, 'times');
      const { session } = await scheduler.client.getSession({ sessionId: sessionIds[0]! });
      expect(session).to.include({
        taskId: 'times',
        groupId: 'g0',
        attempt: 1,
        nodeId: 'node-1',
        harness: 'shell',
      });
      expect(session?.times).to.include({ prepareMs: 7n, runMs: 7n, buildMs: 7n, evaluateMs: 7n });
      expect(Number(session?.times?.totalMs)).to.be.greaterThan(0);
      expect(session?.attempts).to.have.length(1);
      expect(session?.attempts[0]?.endTime).to.not.equal(undefined);
    });

    it('needs no verdict where the task has no evaluator', async () => {
      await using node = await startFakeNode(nats.url);
      const spec = taskSpec('ungraded');
      delete spec.evaluator;
      await scheduler.client.submitTask({ spec });
      const group = await groupOf(bus, 'ungraded');
      expect(group.sessions[0]).to.include({ outcome: Outcome.COMPLETED });
      expect(group.sessions[0]?.reward).to.equal(undefined);
      expect(node.taken.map(({ kind }) => kind.case)).to.deep.equal(['prepare', 'run', 'build']);
    });

    it('builds and grades a session whose harness failed', async () => {
      await using node = await startFakeNode(nats.url);
      node.on.run = () => ({
        case: 'ran',
        value: {
          outcome: Outcome.HARNESS_ERROR,
          exitCode: 3,
          failure: { reason: 'HARNESS_EXIT', message: 'exit 3' },
        },
      });
      await scheduler.client.submitTask({ spec: taskSpec('harness-error') });
      const [result] = (await groupOf(bus, 'harness-error')).sessions;
      expect(result).to.include({ outcome: Outcome.HARNESS_ERROR, reward: 0.5 });
      expect(result?.failure?.reason).to.equal('HARNESS_EXIT');
      expect(result?.trajectory).to.not.equal(undefined);
    });

    it('never has more sessions on a node than its slots', async () => {
      let running = 0;
      let most = 0;
      await using node = await startFakeNode(nats.url, { prepareSlots: 2, runSlots: 2, readySlots: 1 });
      const ran = node.on.run;
      node.on.run = async (work) => {
        most = Math.max(most, ++running);
        await until('two run', () => most > 1);
        await new Promise((resolve) => setTimeout(resolve, 30));
        running--;
        return ran(work);
      };
      await scheduler.client.submitTask({ spec: taskSpec('slots', { numSamples: 12 }) });
      let preparing = 0;
      let ready = 0;
      await until('all ended', async () => {
        const { nodes } = await scheduler.client.listNodes({});
        preparing = Math.max(preparing, nodes[0]?.preparing ?? 0);
        ready = Math.max(ready, (nodes[0]?.ready ?? 0) + (nodes[0]?.preparing ?? 0));
        return (await scheduler.client.getTask({ taskId: 'slots' })).task?.endTime !== undefined;
      });
      expect(most).to.equal(2);
      expect(preparing).to.be.at.most(2);
      expect(ready).to.be.at.most(3);
    });
  });

  describe('failures', () => {
    it('tries again after an infrastructure failure, with a pause, and keeps the attempt', async () => {
      await using node = await startFakeNode(nats.url);
      const run = node.on.run;
      node.on.run = (work) => (work.ref?.attempt === 1 ? failed('run', 'ENGINE_UNAVAILABLE') : run(work));
      await scheduler.client.submitTask({ spec: taskSpec('again') });
      const [result] = (await groupOf(bus, 'again')).sessions;
      expect(result).to.include({ attempt: 2, outcome: Outcome.COMPLETED, reward: 0.5 });
      const [session] = await sessionsOf(scheduler.client, 'again');
      expect(session?.failure).to.equal(undefined);
      expect(session?.attempts.map(({ failure }) => failure?.reason)).to.deep.equal([
        'ENGINE_UNAVAILABLE',
        undefined,
      ]);
      const [first, second] = session!.attempts;
      const pauseMs = Number(second?.startTime?.nanos) / 1e6 + Number(second?.startTime?.seconds) * 1e3;
      expect(
        pauseMs - (Number(first?.endTime?.seconds) * 1e3 + Number(first?.endTime?.nanos) / 1e6),
      ).to.be.at.least(500);
    });

    it('goes again where what is told of it would fit no message of the log, and holds nobody up', async () => {
      await using node = await startFakeNode(nats.url);
      const build = node.on.build;
      const maskedTokens: Record<string, bigint> = {};
      for (let i = 0; i < 30_000; i++) maskedTokens[`a_reason_of_its_own_${i}`] = 1n;
      node.on.build = (work) =>
        work.ref?.attempt === 1 ? { case: 'built', value: { stats: { maskedTokens } } } : build(work);
      await scheduler.client.submitTask({ spec: taskSpec('chatty') });
      await scheduler.client.submitTask({ spec: taskSpec('quiet', { numSamples: 3 }) });
      for (const taskId of ['chatty', 'quiet']) {
        const { sessions } = await groupOf(bus, taskId);
        expect(sessions.map(({ outcome, attempt }) => [outcome, attempt])).to.deep.equal(
          sessions.map(() => [Outcome.COMPLETED, 2]),
        );
      }
      const [session] = await sessionsOf(scheduler.client, 'chatty');
      expect(session?.attempts[0]?.failure?.message).to.match(/SESSION_BYTES_MAX/);
    });

    it('ends without a reward and without a trajectory after the last attempt', async () => {
      await using node = await startFakeNode(nats.url);
      node.on.evaluate = () => failed('evaluate', 'SANDBOX_FAILED');
      await scheduler.client.submitTask({ spec: taskSpec('lost', { maxAttempts: 2 }) });
      const [result] = (await groupOf(bus, 'lost')).sessions;
      expect(result).to.include({ attempt: 2, outcome: Outcome.INFRASTRUCTURE_ERROR });
      expect(result?.reward).to.equal(undefined);
      expect(result?.failure).to.include({ reason: 'SANDBOX_FAILED', infrastructure: true });
      expect(result?.trajectory).to.equal(undefined);
      expect((await sessionsOf(scheduler.client, 'lost'))[0]?.attempts).to.have.length(2);
    });

    it('ends as a task error, at once, when the preparation fails by itself', async () => {
      await using node = await startFakeNode(nats.url);
      node.on.prepare = () => failed('prepare', 'PREPARE_FAILED', 'step 1 ended with 1');
      await scheduler.client.submitTask({ spec: taskSpec('bad-prepare') });
      const [result] = (await groupOf(bus, 'bad-prepare')).sessions;
      expect(result).to.include({ attempt: 1, outcome: Outcome.TASK_ERROR });
      expect(result?.reward).to.equal(undefined);
      expect(result?.failure?.message).to.equal('step 1 ended with 1');
      await until('its sandbox is revoked', () => node.sandboxes.size === 0);
    });

    it('keeps the trajectory when the grading fails by itself', async () => {
      await using node = await startFakeNode(nats.url);
      const build = node.on.build;
      node.on.build = async (work) => {
        await until('the verdict is in', () => node.taken.some(({ kind }) => kind.case === 'evaluate'));
        await new Promise((resolve) => setTimeout(resolve, 100));
        return await build(work);
      };
      node.on.evaluate = () => failed('evaluate', 'PREPARE_FAILED');
      await scheduler.client.submitTask({ spec: taskSpec('bad-grading') });
      const [result] = (await groupOf(bus, 'bad-grading')).sessions;
      expect(result).to.include({ attempt: 1, outcome: Outcome.TASK_ERROR });
      expect(result?.reward).to.equal(undefined);
      expect(result?.trajectory).to.not.equal(undefined);
    });

    it('gives a lost node up and goes on at another one', async () => {
      const lost = await startFakeNode(nats.url, { id: 'node-lost', on: { run: () => undefined } });
      await scheduler.client.submitTask({ spec: taskSpec('node-lost') });
      await until('it runs', () => lost.taken.some(({ kind }) => kind.case === 'run'));
      await lost[Symbol.asyncDispose]();
      await using _other = await startFakeNode(nats.url, { id: 'node-other' });
      const [result] = (await groupOf(bus, 'node-lost')).sessions;
      expect(result).to.include({ attempt: 2, outcome: Outcome.COMPLETED });
      const [session] = await sessionsOf(scheduler.client, 'node-lost');
      expect(session?.attempts.map(({ nodeId }) => nodeId)).to.deep.equal(['node-lost', 'node-other']);
      expect(session?.attempts[0]?.failure?.reason).to.equal('NODE_LOST');
      const { nodes } = await scheduler.client.listNodes({});
      expect(nodes.find(({ nodeId }) => nodeId === 'node-lost')?.healthy).to.equal(false);
    });

    it('goes on at another node as soon as one is stopped, which uses no attempt up', async () => {
      await using stopped = await startFakeNode(nats.url, {
        id: 'node-stopped',
        on: { run: () => undefined },
      });
      await scheduler.client.submitTask({ spec: taskSpec('stopped', { maxAttempts: 1 }) });
      await until('it runs', () => stopped.taken.some(({ kind }) => kind.case === 'run'));
      await using _other = await startFakeNode(nats.url, { id: 'node-other' });
      await stopped.leave();
      const [result] = (await groupOf(bus, 'stopped')).sessions;
      expect(result).to.include({ attempt: 2, outcome: Outcome.COMPLETED });
      const [session] = await sessionsOf(scheduler.client, 'stopped');
      expect(session?.attempts[0]?.failure?.reason).to.equal('SHUTTING_DOWN');
    });

    it('takes back what a node held before it began anew, and does not wait until it counts as lost', async () => {
      const first = await startFakeNode(nats.url, { id: 'node-reboot', on: { run: () => undefined } });
      await scheduler.client.submitTask({ spec: taskSpec('reboot') });
      await until('it runs', () => first.taken.some(({ kind }) => kind.case === 'run'));
      await first[Symbol.asyncDispose]();
      await using _second = await startFakeNode(nats.url, { id: 'node-reboot' });
      const [result] = (await groupOf(bus, 'reboot')).sessions;
      expect(result).to.include({ attempt: 2, outcome: Outcome.COMPLETED });
      const [session] = await sessionsOf(scheduler.client, 'reboot');
      expect(session?.attempts[0]?.failure?.reason).to.equal('RUNTIME_LOST');
    });

    it('gives a node that was cut off nothing for what it said before it let go', async () => {
      const place = { id: 'node-cut', bootId: 'before' };
      const first = await startFakeNode(nats.url, { ...place, on: { run: () => undefined } });
      await scheduler.client.submitTask({ spec: taskSpec('cut') });
      await until('it runs', () => first.taken.some(({ kind }) => kind.case === 'run'));
      await first[Symbol.asyncDispose]();
      const isHealthy = async () =>
        (await scheduler.client.listNodes({})).nodes.some(({ healthy }) => healthy);
      await until('it is lost', async () => !(await isHealthy()));
      await sleep(ATTEMPT_BACKOFF_MS);
      const gone = { heartbeatMs: 60_000, on: { prepare: () => undefined } };
      const once = await startFakeNode(nats.url, { ...place, ...gone });
      await until('it is heard', isHealthy);
      await once[Symbol.asyncDispose]();
      await using _second = await startFakeNode(nats.url, { id: place.id });
      const [result] = (await groupOf(bus, 'cut')).sessions;
      expect(result).to.include({ attempt: 2, outcome: Outcome.COMPLETED });
    });

    it('drops stale facts: of an older attempt, of another boot, of a stage that is over', async () => {
      await using node = await startFakeNode(nats.url);
      const run = node.on.run;
      node.on.run = (work) => (work.ref?.attempt === 1 ? failed('run', 'SANDBOX_FAILED') : run(work));
      node.on.evaluate = () => undefined;
      await scheduler.client.submitTask({ spec: taskSpec('stale') });
      await until('the second attempt waits for its verdict', () =>
        node.taken.some(({ kind, ref }) => kind.case === 'evaluate' && ref?.attempt === 2),
      );
      const late = node.taken.find(({ ref }) => ref?.attempt === 1)!.ref!;
      const present = node.taken.find(({ ref }) => ref?.attempt === 2)!.ref!;
      const verdict = (reward: number) => ({ case: 'evaluated' as const, value: { reward } });
      await node.fact(late, verdict(0.1));
      await node.fact(
        { ...present, bootId: 'another-boot', attempt: 2 },
        failed('evaluate', 'SANDBOX_FAILED'),
      );
      await node.fact(present, failed('run', 'SANDBOX_FAILED'));
      await node.fact({ ...present, sessionId: 's-unknown-0' }, verdict(0.2));
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect((await sessionsOf(scheduler.client, 'stale'))[0]?.state).to.equal(SessionState.FINISHING);
      await node.fact(present, verdict(0.9));
      const [result] = (await groupOf(bus, 'stale')).sessions;
      expect(result).to.include({ attempt: 2, reward: 0.9, outcome: Outcome.COMPLETED });
    });

    it("revokes a sandbox that is nobody's, again and again", async () => {
      await using node = await startFakeNode(nats.url);
      const ref = {
        sessionId: 's-nobody-0',
        attempt: 1,
        nodeId: node.id,
        bootId: node.bootId,
        taskId: '',
        sampleIndex: 0,
      };
      node.sandboxes.set('s-nobody-0.1', { $typeName: 'polar.event.v1.AttemptRef', ...ref });
      await until('it is revoked', () => node.sandboxes.size === 0);
      expect(node.revoked.map(({ sessionId }) => sessionId)).to.include('s-nobody-0');
    });
  });
});
