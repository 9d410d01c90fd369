// Several tasks in one submit, with a real nats-server: all or none, one commit, each with its own request_id.
import { expect } from 'chai';
import type { TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { BATCH_SESSIONS_MAX, BATCH_TASKS_MAX, COMMIT_BYTES_MAX } from '../../services/common/limits.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { groupOf, startScheduler, type TestScheduler, taskSpec, until } from '../support/scheduler.ts';

interface Refused {
  readonly reason: string;
  readonly message: string;
  readonly fields: readonly { readonly field: string; readonly description: string }[];
}

describe('scheduler batches', () => {
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

  const submit = async (...specs: TaskSpec[]) =>
    (await scheduler.client.submitTasks({ tasks: specs.map((spec) => ({ spec })) })).tasks;
  const refused = async (...specs: TaskSpec[]): Promise<Refused> => {
    try {
      await submit(...specs);
    } catch (error) {
      return error as Refused;
    }
    throw new Error('it was not refused');
  };
  const taskIds = async (): Promise<(string | undefined)[]> =>
    (await scheduler.client.listTasks({ summary: true })).tasks.map(({ taskId }) => taskId).sort();
  const commits = async (): Promise<number> =>
    (await bus.jsm.streams.info(STREAMS.state.name)).state.last_seq;

  it('are one commit, answered in order, and each task runs as if it were alone', async () => {
    const before = await commits();
    const tasks = await submit(taskSpec('b', { numSamples: 2 }), taskSpec('a'), taskSpec('c'));
    expect(await commits()).to.equal(before + 1);
    expect(tasks.map(({ task }) => task?.taskId)).to.deep.equal(['b', 'a', 'c']);
    expect(tasks.map(({ sessionIds }) => sessionIds.length)).to.deep.equal([2, 1, 1]);
    await using _node = await startFakeNode(nats.url);
    for (const { task, sessionIds } of tasks) {
      const group = await groupOf(bus, task?.taskId ?? '');
      expect(group.sessions.map(({ sessionId }) => sessionId)).to.deep.equal(sessionIds);
    }
  });

  it('give the first answer for tasks that are there, and take the rest', async () => {
    const first = await scheduler.client.submitTask({ spec: taskSpec('known'), requestId: 'r' });
    const before = await commits();
    const tasks = [{ spec: taskSpec('new') }, { spec: taskSpec('known'), requestId: 'r' }];
    const [one, two] = await Promise.all([
      scheduler.client.submitTasks({ tasks }),
      scheduler.client.submitTasks({ tasks }),
    ]);
    expect(one.tasks.map(({ sessionIds }) => sessionIds)).to.deep.equal(
      two.tasks.map(({ sessionIds }) => sessionIds),
    );
    expect(one.tasks[1]?.sessionIds).to.deep.equal(first.sessionIds);
    expect(await commits()).to.equal(before + 1);
    await using _node = await startFakeNode(nats.url);
    await groupOf(bus, 'new');
    await until('they are in the archive', async () => {
      const info = await bus.jsm.streams.info(STREAMS.archivedTasks.name);
      return info.state.messages >= 2;
    });
    const again = await scheduler.client.submitTasks({ tasks });
    expect(again.tasks[0]?.sessionIds).to.deep.equal(one.tasks[0]?.sessionIds);
  });

  it('are refused whole where one task is not possible', async () => {
    await submit(taskSpec('there'));
    await scheduler.client.cancelTask({ taskId: 'buried', ahead: true });
    const other = await refused(taskSpec('n1'), taskSpec('there', { instruction: 'another' }));
    expect(other.reason).to.equal('TASK_EXISTS');
    expect((await refused(taskSpec('n1'), taskSpec('buried'))).reason).to.equal('TASK_CANCELLED');
    await using _node = await startFakeNode(nats.url);
    await until('the node is known', async () => (await scheduler.client.listNodes({})).nodes.length > 0);
    const missing = await refused(
      taskSpec('n1'),
      taskSpec('n2', { runtime: { backend: 'bubblewrap', image: 'nowhere' } }),
    );
    expect(missing).to.include({ reason: 'IMAGE_NOT_FOUND' });
    expect(missing.message).to.match(/^task n2: /);
    expect(missing.fields[0]?.field).to.equal('tasks[1].spec.runtime.image');
    expect(await taskIds()).to.deep.equal(['there']);
  });

  it('tell all faults, each with its task', async () => {
    const faulty = await refused(
      taskSpec('ok'),
      taskSpec('?', { numSamples: BATCH_SESSIONS_MAX }),
      taskSpec('ok'),
      taskSpec('hook', { callbackUrl: 'http://10.0.0.1/' }),
    );
    expect(faulty.reason).to.equal('INVALID_TASK');
    expect(faulty.fields.map(({ field }) => field)).to.have.members([
      'tasks[1].spec.task_id',
      'tasks[2].spec.task_id',
      'tasks[3].spec.callback_url',
      'tasks',
    ]);
    const tasks = [
      { spec: taskSpec('x'), requestId: 'y' },
      { spec: taskSpec('y'), requestId: '' },
      { spec: taskSpec('z'), requestId: 'r'.repeat(200) },
    ];
    const clash = await scheduler.client.submitTasks({ tasks }).catch((error) => error);
    expect(clash.fields.map(({ field }: { field: string }) => field)).to.have.members([
      'tasks[1].request_id',
      'tasks[2].request_id',
    ]);
    expect(await taskIds()).to.deep.equal([]);
  });

  it('are limited in tasks and in what they take in the log, and name the limit', async () => {
    expect((await refused()).fields[0]?.description).to.match(/BATCH_TASKS_MAX/);
    const many = Array.from({ length: BATCH_TASKS_MAX }, (_, i) => taskSpec(`t-${i}`));
    expect((await refused(...many, taskSpec('more'))).fields[0]?.description).to.match(/BATCH_TASKS_MAX/);
    const large = (i: number): TaskSpec => taskSpec(`l-${i}`, { instruction: 'x'.repeat(200 * 1024) });
    const above = await refused(large(0), large(1), large(2));
    expect(above.fields[0]?.description).to.include(`COMMIT_BYTES_MAX (${COMMIT_BYTES_MAX})`);
    const wide = (i: number): TaskSpec => taskSpec(`w-${i}`, { metadata: { a: Array(60_000).fill(null) } });
    expect((await refused(wide(0), wide(1))).fields).to.deep.equal([
      { field: 'tasks', description: 'hold more than TASK_VALUES_MAX (100000) values: submit fewer at once' },
    ]);
    expect(await submit(large(0), large(1))).to.have.length(2);
    expect(await submit(...many)).to.have.length(BATCH_TASKS_MAX);
    expect((await scheduler.client.listTasks({ summary: true, pageSize: 1000 })).tasks).to.have.length(1_000);
  });

  it('are there after a restart, all of them', async () => {
    const tasks = await submit(taskSpec('a', { numSamples: 3 }), taskSpec('b'));
    await scheduler[Symbol.asyncDispose]();
    scheduler = await startScheduler(nats.url);
    await scheduler.leading;
    expect(await taskIds()).to.deep.equal(['a', 'b']);
    const again = await submit(taskSpec('a', { numSamples: 3 }), taskSpec('b'));
    expect(again.map(({ sessionIds }) => sessionIds)).to.deep.equal(
      tasks.map(({ sessionIds }) => sessionIds),
    );
  });
});
