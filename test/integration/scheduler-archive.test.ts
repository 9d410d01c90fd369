// The archive of ended tasks on a real nats-server: what is asked of a task stays answered when it has left memory, and a
// scheduler that is killed in between leaves nothing out and nothing twice.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Change, CommitSchema } from '../../gen/ts/polar/event/v1/state_pb.js';
import { RetryOnly, type Task } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../services/common/clock.ts';
import type { PolarError } from '../../services/common/errors.ts';
import { COMMIT_BYTES_MAX, SIDE_EFFECTS_AT_ONCE_MAX } from '../../services/common/limits.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { completeTaskSpec } from '../../services/common/specs/task-spec.ts';
import { Archive } from '../../services/scheduler/archive/archive.ts';
import { archivedChanges } from '../../services/scheduler/archive/lookup.ts';
import { ended, queuedSession } from '../../services/scheduler/domain/session.ts';
import {
  announcedGroup,
  sessionChange,
  taskChange,
  tombstoneChange,
} from '../../services/scheduler/domain/state.ts';
import { specDigest, taskRecord } from '../../services/scheduler/domain/task.ts';
import { lastSeqOf } from '../../services/scheduler/journal/chain.ts';
import { openStateLog } from '../../services/scheduler/journal/state-log.ts';
import { startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  groupOf,
  type RolloutClient,
  sessionsOf,
  spawnScheduler,
  startScheduler,
  taskSpec,
  until,
} from '../support/scheduler.ts';

const DAY_MS = 86_400_000;
const SLOTS = { runSlots: 16, prepareSlots: 16, readySlots: 16, evaluateSlots: 16 };

const refusal = (call: Promise<unknown>): Promise<PolarError> =>
  call.then(
    () => expect.fail('it was answered'),
    (error) => error,
  );

/** Tasks that the log says are archived, as often as it says so. */
async function archivedInLog(bus: Bus): Promise<string[]> {
  const last = await lastSeqOf(bus);
  const read = async (seq: number): Promise<string[]> => {
    const stored = await bus.direct.getMessage(STREAMS.state.name, { seq });
    return fromBinary(CommitSchema, stored.data).changes.flatMap(({ kind }) =>
      kind.case === 'taskArchived' ? [kind.value.taskId] : [],
    );
  };
  return (await Promise.all(Array.from({ length: last }, (_, i) => read(i + 1)))).flat();
}

const bytesOf = (changes: Change[]): number =>
  toBinary(CommitSchema, create(CommitSchema, { changes })).byteLength;

/** Of so many bytes in the log; it says nothing. */
function changeOf(bytes: number): Change {
  const named = (length: number): Change => tombstoneChange('x'.repeat(length), 0);
  return named(2 * bytes - bytesOf([named(bytes)]));
}

async function allTasks(client: RolloutClient, pageSize: number, sinceTime?: Timestamp): Promise<Task[]> {
  const tasks: Task[] = [];
  for (let pageToken = ''; ; ) {
    const page = await client.listTasks({ pageSize, pageToken, ...(sinceTime && { sinceTime }) });
    tasks.push(...page.tasks);
    pageToken = page.nextPageToken;
    if (pageToken === '') return tasks;
  }
}

async function watched(client: RolloutClient, taskId: string): Promise<Session[]> {
  const sessions: Session[] = [];
  for await (const { session } of client.watchTask({ taskId }))
    if (session !== undefined) sessions.push(session);
  return sessions;
}

describe('scheduler archive', () => {
  let nats: TestNats;
  let bus: Bus;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
  });
  afterEach(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  it('answers for a task that has left memory as it did before', async () => {
    await using _node = await startFakeNode(nats.url, SLOTS);
    await using scheduler = await startScheduler(nats.url);
    const { client } = scheduler;
    const spec = taskSpec('gone', { numSamples: 300, metadata: { split: 'train' } });
    const { sessionIds } = await client.submitTask({ spec, requestId: 'r-gone' });
    const last = await watched(client, 'gone');
    await until('it is archived', async () => (await archivedInLog(bus)).includes('gone'));

    const { task } = await client.getTask({ taskId: 'gone' });
    expect(task?.spec?.metadata).to.deep.equal({ split: 'train' });
    expect(task).to.deep.include({ sessionsByOutcome: { completed: 300 }, meanReward: 0.5 });
    expect(task?.endTime).to.not.equal(undefined);
    const sessions = await sessionsOf(client, 'gone');
    expect(sessions.map(({ sessionId }) => sessionId)).to.deep.equal(sessionIds);
    const page = await client.listSessions({ taskId: 'gone', pageSize: 7, pageToken: '252' });
    expect(page.sessions).to.deep.equal(sessions.slice(252, 259));
    expect(page.nextPageToken).to.equal('259');
    for (const i of [0, 255, 256, 299]) {
      const { session } = await client.getSession({ sessionId: sessionIds[i] ?? '' });
      expect(session).to.deep.equal(sessions[i]);
      expect(session).to.deep.equal(last.findLast(({ sampleIndex }) => sampleIndex === i));
    }
    expect((await watched(client, 'gone')).map(({ sampleIndex }) => sampleIndex)).to.deep.equal(
      sessionIds.map((_, i) => i),
    );
    expect((await client.cancelTask({ taskId: 'gone' })).task).to.deep.equal(task);

    const again = await client.submitTask({ spec, requestId: 'r-gone' });
    expect(again).to.deep.include({ sessionIds, task });
    const other = taskSpec('gone', { numSamples: 2 });
    expect((await refusal(client.submitTask({ spec: other }))).reason).to.equal('TASK_EXISTS');
    const clash = await refusal(client.submitTask({ spec: taskSpec('new'), requestId: 'r-gone' }));
    expect(clash.reason).to.equal('TASK_EXISTS');
    expect(clash.message).to.include('task gone');
    // What has no place in a subject asks NATS for nothing: it would find others, or end the connection.
    const odd = ['*-0', 'a b-0', '>-0', 'x\r\nSUB > 9\r\n-0', 'a.b-0', '-0'];
    for (const sessionId of [`${sessionIds[0]}0000`, 's-0-1', 'x', ...odd]) {
      expect((await refusal(client.getSession({ sessionId }))).reason).to.equal('NOT_FOUND');
    }
  });

  it('keeps ended tasks out of snapshots, and lists them behind those in memory', async () => {
    const node = await startFakeNode(nats.url, SLOTS);
    const first = await startScheduler(nats.url, { commitsPerSnapshot: 5 });
    for (let i = 0; i < 5; i++) await first.client.submitTask({ spec: taskSpec(`t${i}`) });
    await until('all are archived', async () => {
      const { state } = await bus.jsm.streams.info(STREAMS.archivedTasks.name);
      return state.messages === 5;
    });
    await node[Symbol.asyncDispose]();
    for (let i = 5; i < 8; i++) await first.client.submitTask({ spec: taskSpec(`t${i}`) });
    await first[Symbol.asyncDispose]();
    await using second = await startScheduler(nats.url);
    for (const pageSize of [1, 2, 3, 8, 100]) {
      const ids = (await allTasks(second.client, pageSize)).map(({ taskId }) => taskId);
      expect(ids.slice(0, 3)).to.deep.equal(['t7', 't6', 't5']);
      expect(ids.slice(3).sort()).to.deep.equal(['t0', 't1', 't2', 't3', 't4']);
    }
  });

  it('leaves out what ended before a time, in memory and in the archive', async () => {
    const node = await startFakeNode(nats.url, SLOTS);
    await using scheduler = await startScheduler(nats.url);
    const { client } = scheduler;
    const archive = async (...taskIds: string[]): Promise<void> => {
      for (const taskId of taskIds) await client.submitTask({ spec: taskSpec(taskId) });
      await until('they are archived', async () => {
        const archived = await archivedInLog(bus);
        return taskIds.every((taskId) => archived.includes(taskId));
      });
    };
    await archive('t0', 't1');
    const { task } = await client.getTask({ taskId: 't0' });
    const other = await client.getTask({ taskId: 't1' });
    const endMs = [task, other.task].map((one) => timestampMs(one?.endTime as Timestamp));
    const sinceTime = timestampFromMs(Math.max(...endMs) + 1);
    await archive('t2', 't3');
    await node[Symbol.asyncDispose]();
    await client.submitTask({ spec: taskSpec('t4') });
    for (const pageSize of [1, 2, 3, 100]) {
      const ids = (await allTasks(client, pageSize, sinceTime)).map(({ taskId }) => taskId);
      expect(ids[0]).to.equal('t4');
      expect(ids.slice(1).sort()).to.deep.equal(['t2', 't3']);
    }
    await client.cancelTask({ taskId: 't4' });
    const future = timestampFromMs(Date.now() + DAY_MS);
    expect(await allTasks(client, 1, future)).to.deep.equal([]);
  });

  it('archives a task again that a kill left between its pages and its commit', async () => {
    const { signal } = new AbortController();
    const blobs = createBlobStore(bus);
    const log = createLogger('test', 'silent');
    const hooks = { onCommitted: () => {}, onFailed: () => {} };
    const stateLog = await openStateLog({ bus, blobs, log, holder: 'test', signal, ...hooks });
    const archive = new Archive(bus, blobs, signal);
    for (const taskId of ['nothing', 'pages', 'whole']) {
      const spec = completeTaskSpec(taskSpec(taskId, { numSamples: 2 }));
      const init = {
        filesRef: undefined,
        specSha256: specDigest(spec),
        requestId: taskId,
        createMs: Date.now(),
      };
      const record = taskRecord({ spec, sessionPrefix: `s-${taskId}`, ...init });
      const sessions = [0, 1].map((i) =>
        ended(queuedSession(record, spec, i), Outcome.CANCELLED, Date.now()),
      );
      await stateLog.journal.propose(
        taskChange(record),
        ...sessions.map(sessionChange),
        announcedGroup(taskId, 'g0'),
      );
      const archived = { $typeName: 'polar.event.v1.ArchivedTask' as const, record };
      if (taskId === 'whole') await archive.put(archived, sessions);
      if (taskId === 'pages') {
        await archive.put(archived, sessions);
        await bus.jsm.streams.purge(STREAMS.archivedTasks.name, { filter: 'polar.v1.archive.task.pages' });
      }
    }
    await using scheduler = await startScheduler(nats.url);
    await until('all are archived', async () => (await archivedInLog(bus)).length === 3);
    const tasks = await allTasks(scheduler.client, 2);
    expect(tasks.map(({ taskId }) => taskId).sort()).to.deep.equal(['nothing', 'pages', 'whole']);
    for (const { sessionsByOutcome } of tasks) expect(sessionsByOutcome).to.deep.equal({ cancelled: 2 });
    const { state } = await bus.jsm.streams.info(STREAMS.archive.name);
    expect(state.messages).to.equal(3);
  });

  it('brings nothing back of which sessions are gone', async () => {
    await using scheduler = await startScheduler(nats.url);
    const { client } = scheduler;
    await client.submitTask({ spec: taskSpec('faded', { numSamples: 300 }) });
    await client.cancelTask({ taskId: 'faded' });
    await until('it is archived', async () => (await archivedInLog(bus)).includes('faded'));
    await bus.jsm.streams.purge(STREAMS.archive.name, { filter: 'polar.v1.archive.sessions.*.0' });
    const again = await refusal(client.retrySessions({ taskId: 'faded', only: RetryOnly.MISSING }));
    expect(again.reason).to.equal('NOT_FOUND');
    expect((await client.getTask({ taskId: 'faded' })).task?.sessionsByState).to.deep.equal({ ended: 300 });
    const { sessions } = await client.listSessions({ taskId: 'faded', pageSize: 270 });
    expect(sessions.map(({ sampleIndex }) => sampleIndex)).to.deep.equal(
      Array.from({ length: 14 }, (_, i) => 256 + i),
    );
  });

  /**
   * A task of 4 sessions that a kill left behind the first of the commits that bring it back: there is room for so many of
   * its changes in that one. Returns its sessions as they ended.
   */
  async function tornTask(taskId: string, changesBefore = 4): Promise<Session[]> {
    const first = await startScheduler(nats.url);
    await first.client.submitTask({ spec: taskSpec(taskId, { numSamples: 4 }) });
    await first.client.cancelTask({ taskId });
    await until('it is archived', async () => (await archivedInLog(bus)).includes(taskId));
    const sessions = await sessionsOf(first.client, taskId);
    await first[Symbol.asyncDispose]();
    const kill = new AbortController();
    const { signal } = kill;
    const blobs = createBlobStore(bus);
    const log = createLogger('test', 'silent');
    const hooks = { onCommitted: () => kill.abort(), onFailed: () => {} };
    const { journal } = await openStateLog({ bus, blobs, log, holder: 'test', signal, ...hooks });
    const changes =
      (await archivedChanges(new Archive(bus, blobs, new AbortController().signal), taskId)) ?? [];
    const bytes = bytesOf(changes.flat().slice(0, changesBefore));
    await Promise.allSettled([
      journal.propose(changeOf(COMMIT_BYTES_MAX - bytes)),
      journal.proposeParts(changes),
    ]);
    return sessions;
  }

  for (const changes of [1, 2, 4])
    it(`completes a task that a kill left after ${changes} of the changes that bring it back`, async () => {
      await tornTask('torn', changes);
      await using node = await startFakeNode(nats.url, SLOTS);
      await using scheduler = await startScheduler(nats.url);
      await scheduler.leading;
      const { sessionIds } = await scheduler.client.retrySessions({ taskId: 'torn', only: RetryOnly.FAILED });
      expect(sessionIds).to.deep.equal([]);
      await until('it is archived again', async () => (await archivedInLog(bus)).length >= 2);
      const sessions = await sessionsOf(scheduler.client, 'torn');
      expect(sessions.map(({ outcome }) => Outcome[outcome])).to.deep.equal(Array(4).fill('CANCELLED'));
      expect(node.taken).to.deep.equal([]);
      const { state } = await bus.jsm.streams.info(STREAMS.trajectories.name);
      expect(state.messages).to.equal(1);
    });

  it('cancels nothing of such a task before it is whole', async () => {
    const before = await tornTask('torn');
    const subject = subjects.archivedTask('torn');
    const stored = await bus.direct.getMessage(STREAMS.archivedTasks.name, { last_by_subj: subject });
    // It cannot be read for now, and is not whole so long.
    await bus.js.publish(subject, Uint8Array.of(0xff));
    await using scheduler = await startScheduler(nats.url);
    await scheduler.leading;
    const { client } = scheduler;
    const cancels = Promise.all([
      client.cancelTask({ taskId: 'torn' }),
      client.cancelSession({ sessionId: before[3]?.sessionId ?? '' }),
    ]);
    await sleep(100);
    await bus.js.publish(subject, stored.data);
    const [{ task }, { session }] = await cancels;
    expect(task?.sessionsByState).to.deep.equal({ ended: 4 });
    expect(session).to.deep.equal(before[3]);
    await until('it is archived again', async () => (await archivedInLog(bus)).length >= 2);
    expect(await sessionsOf(client, 'torn')).to.deep.equal(before);
  });

  it('shows such a task as it ended before it is whole', async () => {
    const before = await tornTask('torn');
    const subject = subjects.archivedTask('torn');
    const stored = await bus.direct.getMessage(STREAMS.archivedTasks.name, { last_by_subj: subject });
    await bus.js.publish(subject, Uint8Array.of(0xff));
    await using scheduler = await startScheduler(nats.url);
    await scheduler.leading;
    const { client } = scheduler;
    // It was tried to bring the rest back, and that is tried again after a pause.
    await sleep(100);
    await bus.js.publish(subject, stored.data);
    const { task } = await client.getTask({ taskId: 'torn' });
    expect(task?.sessionsByState).to.deep.equal({ ended: 4 });
    expect((await client.listTasks({})).tasks).to.deep.equal([task]);
    expect(await sessionsOf(client, 'torn')).to.deep.equal(before);
    expect(await watched(client, 'torn')).to.deep.equal(before);
    const { session, waiting } = await client.getSession({ sessionId: before[3]?.sessionId ?? '' });
    expect({ session, waiting }).to.deep.equal({ session: before[3], waiting: undefined });
    await until('it is archived again', async () => (await archivedInLog(bus)).length >= 2);
  });

  it('holds up nothing else while it cannot be written', async () => {
    await using scheduler = await startScheduler(nats.url);
    const { client } = scheduler;
    const { config } = await bus.jsm.streams.info(STREAMS.archive.name);
    await bus.jsm.streams.update(STREAMS.archive.name, { ...config, max_msg_size: 8 });
    const ids = Array.from({ length: SIDE_EFFECTS_AT_ONCE_MAX + 1 }, (_, i) => `t${i}`);
    await client.submitTasks({ tasks: ids.map((taskId) => ({ spec: taskSpec(taskId) })) });
    await Promise.all(ids.map((taskId) => client.cancelTask({ taskId })));
    await using _node = await startFakeNode(nats.url, SLOTS);
    await client.submitTask({ spec: taskSpec('next') });
    await groupOf(bus, 'next', 10_000);
  });

  it('leaves nothing out and nothing twice when it is killed time and again', async () => {
    const rounds = 5;
    const tasks = 8;
    await using _node = await startFakeNode(nats.url, SLOTS);
    await using scheduler = await spawnScheduler(nats.url);
    const ids: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const names = Array.from({ length: tasks }, (_, i) => `k${round}-${i}`);
      await Promise.all(
        names.map((name) => scheduler.client.submitTask({ spec: taskSpec(name, { numSamples: 3 }) })),
      );
      ids.push(...names);
      // The first tasks end, are written and committed as archived about now.
      await sleep(20 + 45 * round);
      await scheduler.kill();
      await scheduler.start();
    }
    await until('all are archived', async () => new Set(await archivedInLog(bus)).size === rounds * tasks);
    const archived = await archivedInLog(bus);
    expect(archived.sort()).to.deep.equal([...ids].sort());
    const shown = await allTasks(scheduler.client, 7);
    expect(shown.map(({ taskId }) => taskId).sort()).to.deep.equal([...ids].sort());
    for (const id of ids) {
      const sessions = await sessionsOf(scheduler.client, id);
      expect(sessions.map(({ sampleIndex }) => sampleIndex)).to.deep.equal([0, 1, 2]);
      expect(sessions.every(({ outcome }) => outcome === Outcome.COMPLETED)).to.equal(true);
    }
  });
});
