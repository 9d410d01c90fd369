// What a dashboard asks of the scheduler: tasks by filter, pages of sessions with why they wait, changes from now on.
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RetryOnly, WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { asPolarError } from '../../services/common/errors.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { sessionsOf, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

describe('scheduler lists', function () {
  this.timeout(60_000);
  let nats: TestNats;
  let scheduler: TestScheduler;
  beforeEach(async () => {
    nats = await startNats();
    scheduler = await startScheduler(nats.url);
  });
  afterEach(async () => {
    await scheduler[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const submit = (taskId: string, more: Parameters<typeof taskSpec>[1] = {}) =>
    scheduler.client.submitTask({ spec: taskSpec(taskId, more) });
  const allEnded = (taskId: string): Promise<void> =>
    until('all have ended', async () =>
      (await sessionsOf(scheduler.client, taskId)).every(({ endTime }) => endTime !== undefined),
    );

  it('filter tasks by name, harness, state and outcome, in memory and in the archive', async () => {
    await using _node = await startFakeNode(nats.url);
    await submit('Alpha-1');
    await submit('beta-1');
    await Promise.all([allEnded('Alpha-1'), allEnded('beta-1')]);
    await scheduler.client.drainNode({ nodeId: 'node-1' });
    await submit('alpha-2', { harness: { name: 'pi' } });
    await submit('beta-2');
    await scheduler.client.cancelTask({ taskId: 'beta-2' });
    const asked = async (filter: Parameters<typeof scheduler.client.listTasks>[0]['filter']) => {
      const { tasks, nextPageToken } = await scheduler.client.listTasks({ summary: true, filter });
      expect(nextPageToken).to.equal('');
      return tasks.map(({ taskId, harness }) => `${taskId} ${harness}`).sort();
    };
    expect(await asked({ nameContains: 'ALPHA' })).to.deep.equal(['Alpha-1 shell', 'alpha-2 pi']);
    expect(await asked({ harness: 'pi' })).to.deep.equal(['alpha-2 pi']);
    expect(await asked({ state: SessionState.QUEUED })).to.deep.equal(['alpha-2 pi']);
    expect(await asked({ outcome: Outcome.CANCELLED })).to.deep.equal(['beta-2 shell']);
    expect(await asked({ outcome: Outcome.COMPLETED, nameContains: 'beta' })).to.deep.equal(['beta-1 shell']);
    const refused = await scheduler.client
      .listTasks({ filter: { nameContains: 'x'.repeat(129) } })
      .catch(asPolarError);
    expect(refused).to.have.nested.property('fields[0].field', 'filter.name_contains');
  });

  it('go on behind a take-over where they were', async () => {
    const first = await startScheduler(nats.url, { commitsPerSnapshot: 1 });
    await scheduler[Symbol.asyncDispose]();
    scheduler = first;
    await first.leading;
    for (let i = 0; i < 6; i++) await submit(`t${i}`);
    for (let i = 0; i < 3; i++) await first.client.cancelTask({ taskId: `t${i}` });
    await until('what has ended is in the archive', async () => {
      const { nextPageToken } = await first.client.listTasks({ pageSize: 3 });
      return nextPageToken.startsWith('archive-');
    });
    // Its commit is behind the archived ones, and in a snapshot when the scheduler has ended.
    await submit('t6');
    const page = await first.client.listTasks({ pageSize: 2 });
    await first[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url);
    await scheduler.leading;
    const rest = await scheduler.client.listTasks({ pageToken: page.nextPageToken });
    const shown = [...page.tasks, ...rest.tasks].map(({ taskId }) => taskId);
    expect(shown.slice(0, 4)).to.deep.equal(['t6', 't5', 't4', 't3']);
    expect(shown.slice(4).sort()).to.deep.equal(['t0', 't1', 't2']);
    const earlier = await scheduler.client.listTasks({ pageToken: 'order-4' }).catch(asPolarError);
    expect(earlier).to.have.property('reason', 'INVALID_REQUEST');
    expect(earlier).to.have.nested.property('fields[0].field', 'page_token');
  });

  it('leave out no task that comes back from the archive between two pages', async () => {
    const { client } = scheduler;
    for (let i = 0; i < 6; i++) await submit(`t${i}`);
    for (let i = 0; i < 4; i++) await client.cancelTask({ taskId: `t${i}` });
    await until('what has ended is in the archive', async () => {
      const { nextPageToken } = await client.listTasks({ pageSize: 2 });
      return nextPageToken.startsWith('archive-');
    });
    const shown: string[] = [];
    let pageToken = '';
    for (let pages = 0; pages === 0 || pageToken !== ''; pages++) {
      const page = await client.listTasks({ pageSize: 1, pageToken, summary: true });
      shown.push(...page.tasks.map(({ taskId }) => taskId));
      pageToken = page.nextPageToken;
      // One while the tasks in memory are listed, one while the archived ones are, which were not listed yet.
      const [back = ''] = ['t0', 't1', 't2', 't3'].filter((one) => !shown.includes(one));
      if (pages === 0 || pages === 2) await client.retrySessions({ taskId: back, only: RetryOnly.MISSING });
      if (pages === 0 || pages === 2) await submit(`new-${pages}`);
    }
    expect(shown.sort()).to.deep.equal(['t0', 't1', 't2', 't3', 't4', 't5']);
  });

  it('tell with a page of sessions why each of them waits', async () => {
    const { sessionIds } = await submit('waits', { numSamples: 3 });
    const page = await scheduler.client.listSessions({ taskId: 'waits', pageSize: 2, waiting: true });
    expect(Object.keys(page.waiting).sort()).to.deep.equal(sessionIds.slice(0, 2).sort());
    expect(page.waiting[sessionIds[0] ?? '']?.reason).to.equal(WaitReason.NO_NODE);
    expect((await scheduler.client.listSessions({ taskId: 'waits' })).waiting).to.deep.equal({});
    const refused = await scheduler.client
      .listSessions({ taskId: 'waits', pageSize: 101, waiting: true })
      .catch(asPolarError);
    expect(refused).to.have.property('reason', 'INVALID_REQUEST');
  });

  it('watch a task from now on, without its present state', async () => {
    const { sessionIds } = await submit('from-now', { numSamples: 3 });
    const messages: string[] = [];
    const watch = scheduler.client.watchTask({ taskId: 'from-now', changesOnly: true, summary: true });
    for await (const { session, task, cursor } of watch) {
      messages.push(session?.sessionId ?? `progress of ${task?.taskId}`);
      expect(cursor).to.match(/^\d+$/);
      if (messages.length === 1) await scheduler.client.cancelSession({ sessionId: sessionIds[1] ?? '' });
      if (messages.length === 2) await scheduler.client.cancelTask({ taskId: 'from-now' });
    }
    expect(messages).to.deep.equal(['progress of from-now', sessionIds[1], sessionIds[0], sessionIds[2]]);
    const again: unknown[] = [];
    for await (const message of scheduler.client.watchTask({ taskId: 'from-now', changesOnly: true })) {
      again.push(message.session);
    }
    expect(again).to.deep.equal([undefined]);
  });
});
