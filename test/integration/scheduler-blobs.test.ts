// What nothing names any more leaves the blob store, whoever left it there; what anything names stays.
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { RetryOnly } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { failure } from '../../services/common/errors.ts';
import { BLOB_CHUNK_BYTES } from '../../services/common/limits.ts';
import { type BlobStore, createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { failed, ran, startFakeNode } from '../support/fake-node.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { groupOf, startScheduler, taskSpec, until } from '../support/scheduler.ts';

/** A blob counts as old after a second, and at the second sweep that sees it. */
const SWEPT = { sweepTimes: { firstMs: 200, pauseMs: 200, graceMs: 1_000 } };

describe('scheduler: blobs that nothing names', () => {
  let nats: TestNats;
  let bus: Bus;
  let blobs: BlobStore;
  beforeEach(async () => {
    nats = await startNats();
    bus = await openBus({ url: nats.url, name: 'test' });
    blobs = createBlobStore(bus);
  });
  afterEach(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });

  const parts = async (digest: string): Promise<number> => {
    const filter = { subjects_filter: subjects.blobParts(digest) };
    const { state } = await bus.jsm.streams.info(STREAMS.blobs.name, filter);
    return Object.keys(state.subjects ?? {}).length;
  };
  const isGone = (what: string, digest: string): Promise<void> =>
    until(`${what} is gone`, async () => (await parts(digest)) === 0);
  /** A blob that is put now is gone: so is all that is not named and was put before it. */
  const swept = async (): Promise<void> => isGone('a witness', (await blobs.put(randomBytes(1_000))).sha256);
  const purge = (stream: string, filter: string) => bus.jsm.streams.purge(stream, { filter });
  const withFiles = (taskId: string, content: Uint8Array) => {
    const step = { case: 'uploadFile' as const, value: { target: '/data/big', content } };
    return taskSpec(taskId, { maxAttempts: 1, runtime: { prepare: [{ step }] } });
  };

  it('are trajectories and changes of attempts that were replaced; those that count stay', async () => {
    const [built, changed]: [string[], string[]] = [[], []];
    const changesOf = async (attempt = 0) => {
      const changes = await blobs.put(Buffer.from(`changes of ${attempt}`));
      changed[attempt] = changes.sha256;
      return changes;
    };
    await using _node = await startFakeNode(nats.url, {
      on: {
        build: async ({ ref }) => {
          // More than one chunk.
          if (ref?.attempt === 2) {
            await until('it is graded', () => changed[2] !== undefined);
            // The state alone names them now.
            await swept();
          }
          const trajectory = await blobs.put(Buffer.alloc(BLOB_CHUNK_BYTES + 1, ref?.attempt));
          built[ref?.attempt ?? 0] = trajectory.sha256;
          return { case: 'built', value: { trajectory } };
        },
        evaluate: async ({ ref }) => {
          const changes = await changesOf(ref?.attempt);
          if (ref?.attempt !== 1) return { case: 'evaluated', value: { reward: 1, changes } };
          await until('it is built', () => built[1] !== undefined);
          const value = { stage: 'evaluate', failure: failure('SANDBOX_FAILED', 'on purpose'), changes };
          return { case: 'failed', value };
        },
      },
    });
    await using _scheduler = await startScheduler(nats.url, SWEPT);
    await _scheduler.client.submitTask({ spec: taskSpec('again') });
    const [session] = (await groupOf(bus, 'again')).sessions;
    expect(session).to.deep.include({ attempt: 2 });
    expect(session?.trajectory?.sha256).to.equal(built[2]);
    expect(session?.graded?.changes?.sha256).to.equal(changed[2]);
    await isGone('the first', built[1] ?? '');
    await isGone('its changes', changed[1] ?? '');
    await swept();
    expect([await parts(built[2] ?? ''), await parts(changed[2] ?? '')]).to.deep.equal([3, 1]);
  });

  it('are files of tasks that have left the archive; others with the same files keep them', async () => {
    await using node = await startFakeNode(nats.url);
    await using scheduler = await startScheduler(nats.url, SWEPT);
    const { client } = scheduler;
    const content = randomBytes(1_200_000);
    node.on.run = () => failed('run', 'RUNTIME_LOST');
    await client.submitTask({ spec: withFiles('one', content) });
    await groupOf(bus, 'one');
    node.on.run = ran;
    const info = () => bus.jsm.streams.info(STREAMS.archivedTasks.name);
    await until('it is archived', async () => (await info()).state.messages === 1);
    await swept();
    // It may go again, with its files.
    await client.retrySessions({ taskId: 'one', only: RetryOnly.INFRASTRUCTURE });
    await groupOf(bus, 'one', undefined, 'g1');
    node.on.run = () => undefined;
    await client.submitTask({ spec: withFiles('two', content) });
    await until('the other one runs', () =>
      node.taken.some(({ kind, ref }) => kind.case === 'run' && ref?.taskId === 'two'),
    );
    await until('the first is archived again', async () => (await info()).state.last_seq >= 2);
    // As after 30 days.
    for (const stream of [STREAMS.archivedTasks.name, STREAMS.archive.name]) await purge(stream, '>');
    await swept();
    const chunks = async (): Promise<number> => {
      const { state } = await bus.jsm.streams.info(STREAMS.blobs.name, {
        subjects_filter: 'polar.v1.blob.*.manifest',
      });
      return Object.keys(state.subjects ?? {}).length;
    };
    expect(await chunks(), 'the files of the task that runs').to.equal(1);
    await client.cancelTask({ taskId: 'two' });
    await until('it is archived', async () => (await info()).state.messages === 1);
    await purge(STREAMS.archivedTasks.name, '>');
    await until('the files are gone', async () => (await chunks()) === 0);
  });

  it('are what stood for messages that are gone, and what kills have left', async () => {
    await using _scheduler = await startScheduler(nats.url, SWEPT);
    const large = () => randomBytes(300_000);
    const kept = {
      [STREAMS.archive.name]: subjects.archivedSessions('p', 0),
      [STREAMS.completions.name]: subjects.completion('s', 1),
      [STREAMS.work.name]: subjects.work('run', 'away'),
      [STREAMS.dead.name]: subjects.dead('POLAR_WORK'),
      [STREAMS.trajectories.name]: subjects.trajectory('t', 'g0'),
    };
    for (const subject of Object.values(kept)) await publish(bus, blobs, subject, large());
    // A page that is written again stands for another blob.
    await publish(bus, blobs, subjects.archivedSessions('p', 0), large());
    // A writer or a sweep that was killed.
    const torn = await blobs.put(randomBytes(3 * BLOB_CHUNK_BYTES));
    await purge(STREAMS.blobs.name, subjects.blobManifest(torn.sha256));
    const count = async (): Promise<number> => {
      const { state } = await bus.jsm.streams.info(STREAMS.blobs.name, {
        subjects_filter: 'polar.v1.blob.*.0',
      });
      return Object.keys(state.subjects ?? {}).length;
    };
    await isGone('what is torn', torn.sha256);
    await swept();
    expect(await count()).to.equal(5);
    for (const [stream, subject] of Object.entries(kept)) await purge(stream, subject);
    await until('they are gone', async () => (await count()) === 0);
  });
});
