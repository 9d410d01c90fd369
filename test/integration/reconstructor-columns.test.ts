// LAYOUT_COLUMNS: the same as trace by trace, whatever a group holds, and whether it lies packed or not.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { create, toBinary } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type SessionResult, SessionResultSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { Layout, StreamFilterSchema } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { type TrajectoryBatch, TrajectorySchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { asPolarError } from '../../services/common/errors.ts';
import { createLogger } from '../../services/common/logger.ts';
import { CONSUMERS, STREAMS } from '../../services/common/nats/streams.ts';
import { packSubjectOf, subjects } from '../../services/common/nats/subjects.ts';
import { createStore } from '../../services/reconstructor/retention/store.ts';
import { createBatches, type Resolved } from '../../services/reconstructor/streams/batches.ts';
import { createPacks } from '../../services/reconstructor/streams/packs.ts';
import { openTrajectoryLog } from '../../services/reconstructor/streams/trajectory-log.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const { signal } = new AbortController();
const columns = { layout: Layout.COLUMNS };

describe('reconstructor: batches in columns', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  beforeEach(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    reconstructor = await startReconstructor(nats.url);
  });
  afterEach(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  const result = (sampleIndex: number, fields: object): SessionResult =>
    create(SessionResultSchema, {
      ...{ sessionId: `s-${sampleIndex}`, sampleIndex, attempt: 1, outcome: Outcome.COMPLETED, ...fields },
    });
  const announce = async (taskId: string, ...sessions: readonly object[]): Promise<number> =>
    await mesh.announce({ taskId, sessions: sessions.map((one, i) => result(i, one)) });
  const put = (sessionId: string, ids = 40, fields: object = {}) =>
    mesh.putTrajectory(sessionId, ids, { policyVersionMin: 2n, policyVersionMax: 3n, ...fields });
  /** Every announced group has been looked at. */
  const looked = (): Promise<void> =>
    eventually('packs', async () => {
      const { durable_name: name = '' } = CONSUMERS.packs;
      const info = await mesh.bus.jsm.consumers.info(STREAMS.trajectories.name, name);
      return info.num_pending + info.num_ack_pending === 0;
    });
  const subjectOf = (taskId: string): string => packSubjectOf(subjects.trajectory(taskId, 'g0'));
  const packOf = async (taskId: string): Promise<Uint8Array | undefined> => {
    const query = { last_by_subj: subjectOf(taskId) };
    const found = await mesh.bus.jsm.streams.getMessage(STREAMS.packs.name, query).catch(() => undefined);
    return found?.data;
  };
  /** The next batch, and whether it was read as it lies in the store. */
  const resolved = async (taskId: string, bytesMax?: number): Promise<Resolved> => {
    using log = openTrajectoryLog(mesh.bus, mesh.blobs);
    const batches = createBatches(
      mesh.blobs,
      createPacks(mesh.bus),
      createLogger('test', 'silent'),
      bytesMax,
    );
    const stored = await log.ofGroup(taskId, 'g0', signal);
    return await batches.resolve(stored!, Layout.COLUMNS, signal);
  };
  const next = async (consumer: string, taskId = '', request: object = {}): Promise<TrajectoryBatch> => {
    const trainer = new Trainer(reconstructor.client, consumer, 16, taskId, { ...columns, ...request });
    const batch = await trainer.batch();
    trainer.close();
    return batch;
  };
  const failures = ({ details }: TrajectoryBatch): (string | undefined)[] =>
    (details?.trajectories ?? []).map(({ failure }) => failure?.reason);
  const ids = ({ columns: of }: TrajectoryBatch): number => (of?.responseIds.byteLength ?? 0) / 4;

  it('say the same as trace by trace, over either transport and in either form of the client', async () => {
    const trace = {
      responseIds: new Uint8Array(12),
      lossMask: new Uint8Array(3),
      logprobs: new Uint8Array(12),
    };
    const rich = {
      ...{ sessionId: 'rich', builder: 'prefix_merging', policyVersionMin: 1n, policyVersionMax: 9n },
      drift: [{ callId: 'c', firstDifference: 3 }],
      traces: [
        {
          ...trace,
          promptIds: new Uint8Array(8).fill(1),
          spans: [{ callId: 'c', length: 3, policyVersion: 1n }],
        },
        {
          ...trace,
          images: [{ digest: 'd', mediaType: 'image/png', sizeBytes: 5n }],
          routedExperts: {
            rows: new Uint8Array(3),
            known: new Uint8Array(3),
            layers: 1,
            topK: 1,
            itemBytes: 1,
          },
          spans: [{ callId: 'own', length: 3 }],
        },
      ],
    };
    const bytes = toBinary(TrajectorySchema, create(TrajectorySchema, rich as object));
    const one = { reward: 1, trajectory: await mesh.blobs.put(bytes), evaluation: { passed: true } };
    const graded = { ...one, traceRewards: [{ callId: 'own', reward: 0.25 }] };
    const failed = { outcome: Outcome.HARNESS_ERROR, failure: { reason: 'HARNESS_FAILED' } };
    const large = await put('large', 60_000);
    const lost = { sha256: 'a'.repeat(64), sizeBytes: 77n };
    await announce('packed', graded, failed, one, { trajectory: await put('plain', 5) });
    await announce('large', { reward: 0, trajectory: large }, graded);
    await announce('nothing', failed, failed);
    await announce('lost', { trajectory: lost, reward: 1 }, graded);
    await looked();
    const { stdout } = await run(
      join(root, '.venv/bin/python'),
      [join(root, 'test/support/python-columns.py'), reconstructor.url, '4'],
      { env: { ...process.env, PYTHONPATH: join(root, 'clients/python/src') }, timeout: 50_000 },
    );
    const { refused, failures: told } = JSON.parse(stdout) as { refused: string; failures: unknown };
    expect(refused).to.contain('layout');
    const [none, harness] = [null, 'HARNESS_FAILED'];
    expect(told).to.deep.equal([
      [none, harness, none, none],
      [none, none],
      [harness, harness],
      ['BLOB_MISSING', none],
    ]);
    const packs = await Promise.all(['packed', 'large', 'nothing', 'lost'].map(packOf));
    expect(packs.map((pack) => pack !== undefined)).to.deep.equal([true, false, false, false]);
  });

  it('come from what is packed, and without it from single trajectories', async () => {
    const sessions = [
      { trajectory: await put('a'), reward: 1 },
      { trajectory: await put('b'), reward: 0 },
    ];
    const batchId = await announce('t', ...sessions);
    await looked();
    expect((await resolved('t')).packed).to.not.equal(undefined);
    const want = await next('first');
    expect(want).to.include({ batchId: BigInt(batchId), taskId: 't', groupId: 'g0', deliveryCount: 1 });
    expect(ids(want)).to.equal(80);
    const whole = await packOf('t');
    const torn = whole!.slice();
    torn[torn.byteLength - 9]! ^= 1;
    const cases = {
      torn,
      cut: whole!.subarray(0, 90),
      nothing: new Uint8Array(),
      other: Buffer.from('no pack'),
    };
    for (const [name, bytes] of Object.entries(cases)) {
      await mesh.bus.js.publish(subjectOf('t'), bytes);
      expect((await resolved('t')).packed, name).to.equal(undefined);
      expect(await next(name), name).to.deep.equal(want);
    }
    await mesh.bus.jsm.streams.purge(STREAMS.packs.name);
    expect(await next('missing')).to.deep.equal(want);
    await mesh.bus.jsm.streams.delete(STREAMS.packs.name);
    expect(await next('no-stream')).to.deep.equal(want);
  });

  it('do not come from the pack of another group of that name', async () => {
    await announce('t', { trajectory: await put('a'), reward: 1 }, { trajectory: await put('b') });
    await looked();
    const old = await packOf('t');
    await mesh.bus.jsm.streams.purge(STREAMS.trajectories.name);
    await announce('t', { trajectory: await put('a'), reward: 0 }, { trajectory: await put('b') });
    await looked();
    expect(Buffer.compare(old!, (await packOf('t'))!), 'packed anew').to.not.equal(0);
    await mesh.bus.js.publish(subjectOf('t'), old);
    expect((await resolved('t')).packed).to.equal(undefined);
    expect((await next('trainer')).details?.trajectories[0]?.reward).to.equal(0);
  });

  it('are filtered, come again, and are shared and sought as they are trace by trace', async () => {
    await mesh.publishVersion(9);
    await announce(
      't',
      { trajectory: await put('a'), reward: 1 },
      { trajectory: await put('b', 7, { policyVersionMin: 9n, policyVersionMax: 9n }) },
    );
    await announce('u', { trajectory: await put('a'), reward: 1 }, { trajectory: await put('c') });
    await looked();
    const filter = { stalenessMax: 3n };
    const trainer = new Trainer(reconstructor.client, 'shared', 16, '', {
      ...columns,
      filter,
      shared: true,
      messageTokens: 1_000,
    });
    const [first, dropped] = await trainer.batches(2);
    expect(first?.columns?.droppedReasons).to.deep.equal(['stale', '']);
    expect(first?.details?.trajectories.map(({ traces }) => traces.length)).to.deep.equal([0, 1]);
    expect(ids(first!)).to.equal(7);
    expect(dropped).to.include({ droppedReason: 'sessions_dropped' });
    expect(ids(dropped!)).to.equal(0);
    // The other layout on the same cursor.
    const other = new Trainer(reconstructor.client, 'shared', 16, '', { shared: true });
    await other.message();
    const { client } = reconstructor;
    trainer.close();
    const again = await other.batches(2);
    expect(again.map(({ redelivered }) => redelivered)).to.deep.equal([true, true]);
    expect(again[0]?.trajectories.map(({ traces }) => traces.length)).to.deep.equal([1, 1]);
    await client.ackTrajectories({ consumer: 'shared', batchIds: again.map((one) => one.batchId) });
    await client.seekConsumer({ consumer: 'shared', to: { case: 'batchId', value: 1n } });
    other.close();
    const sought = await next('shared', '', { shared: true });
    expect(sought).to.include({ batchId: 1n, redelivered: true });
    expect(ids(sought)).to.equal(47);
  });

  it('are those of tasks whose ids begin as the filter says; others come without traces, by name', async () => {
    await announce('run7-a', { trajectory: await put('a') }, { trajectory: await put('b') });
    await announce('run8-a', { trajectory: await put('c') }, { trajectory: await put('d') });
    await looked();
    expect((await resolved('run8-a')).packed).to.not.equal(undefined);
    for (const layout of [Layout.COLUMNS, Layout.TRACES]) {
      const request = { layout, filter: { taskIdPrefix: 'run8-' }, messageTokens: 1_000 };
      const trainer = new Trainer(reconstructor.client, `of-${layout}`, 16, '', request);
      const told = (await trainer.batches(2)).map((one) => {
        const { columns: all, trajectories } = one;
        return [one.taskId, one.droppedReason, all === undefined ? trajectories.length : all.outcomes.length];
      });
      trainer.close();
      expect(told).to.deep.equal([
        ['run7-a', 'other_task', 2],
        ['run8-a', '', 2],
      ]);
    }
    const wrong = new Trainer(reconstructor.client, 'wrong', 16, '', { filter: { taskIdPrefix: 'a b' } });
    const error = await wrong.message().catch((thrown: Error) => thrown);
    expect(String(error)).to.contain('filter.task_id_prefix: must be the beginning of a task id');
  });

  it('are not sent by rules of a later version, which would be passed over', async () => {
    const rule = { no: 999, wireType: WireType.Varint, data: Uint8Array.of(1) };
    const filter = create(StreamFilterSchema, { stalenessMax: 1n });
    filter.$unknown = [rule, rule];
    const later = new Trainer(reconstructor.client, 'later', 16, '', { filter });
    const error = asPolarError(await later.message().catch((thrown: unknown) => thrown));
    expect([error.reason, error.fields]).to.deep.equal([
      'INVALID_REQUEST',
      [{ field: 'filter', description: 'has field 999, which this version does not know' }],
    ]);
  });

  it('name what cannot be read, and what is too large, in their places', async () => {
    const odd = {
      responseIds: new Uint8Array(12),
      lossMask: new Uint8Array(2),
      logprobs: new Uint8Array(12),
    };
    const bytes = toBinary(TrajectorySchema, create(TrajectorySchema, { traces: [odd] } as object));
    const sessions = [
      { trajectory: await mesh.blobs.put(bytes), reward: 1 },
      { trajectory: await put('b'), reward: 1 },
    ];
    await announce('t', ...sessions);
    await looked();
    const batch = await next('trainer');
    expect(failures(batch)).to.deep.equal(['RECORDS_INVALID', undefined]);
    expect(batch.details?.trajectories[0]?.reward).to.equal(undefined);
    expect(ids(batch)).to.equal(40);
    expect(await packOf('t'), 'what is not whole is not packed').to.equal(undefined);
    const { batch: refused } = await resolved('t', 100);
    expect(refused.trajectories.map(({ failure }) => failure?.reason)).to.deep.equal(
      new Array(2).fill('BATCH_TOO_LARGE'),
    );
  });

  it('are not packed for whom has been sent them, and packs go with their groups', async () => {
    const trainer = new Trainer(reconstructor.client, 'trainer', 16, '', columns);
    await trainer.message();
    const sessions = [{ trajectory: await put('a') }, { trajectory: await put('b') }];
    await mesh.announce({
      taskId: 't',
      sessions: sessions.map((one, i) => result(i, one)),
      readyMs: BigInt(Date.now()),
    });
    await trainer.batch();
    await looked();
    expect(await packOf('t'), 'sent').to.equal(undefined);
    trainer.close();
    const batchId = await announce('u', ...sessions);
    await looked();
    expect(await packOf('u'), 'not sent yet').to.not.equal(undefined);
    await createStore(mesh.bus).removeGroup(batchId, subjects.trajectory('u', 'g0'), signal);
    expect(await packOf('u'), 'removed').to.equal(undefined);
  });
});
