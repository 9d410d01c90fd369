// What a trainer can do with its place in the trajectory stream, over a real NATS server and real reconstructors: give
// batches back, seek, share, filter.
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { SeekTarget } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { TrajectoryBatch } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { sleep } from '../../services/common/clock.ts';
import type { PolarError } from '../../services/common/errors.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { NACK_DELAY_MAX_MS, NACK_REASON_CHARS_MAX } from '../../services/reconstructor/domain/cursor.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

const STREAM = STREAMS.trajectories.name;
const consumer = 'trainer';
const idsOf = (batches: readonly TrajectoryBatch[]): number[] =>
  batches.map(({ batchId }) => Number(batchId));
const refused = async (call: Promise<unknown>): Promise<PolarError> =>
  await call.then(
    () => expect.fail('it was not refused'),
    (error: PolarError) => error,
  );

describe('reconstructor: consumers', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let one: TestReconstructor;
  let trainers: Trainer[];
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
  });
  after(async () => {
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    trainers = [];
    one = await startReconstructor(nats.url);
    await mesh.bus.jsm.streams.purge(STREAM);
    await mesh.bus.jsm.streams.purge('KV_polar_cursors');
  });
  afterEach(async () => {
    for (const trainer of trainers) trainer.close();
    await one[Symbol.asyncDispose]();
  });

  let groups = 0;
  const announce = async (count: number, tokens = 4): Promise<number[]> => {
    const ids: number[] = [];
    for (let i = 0; i < count; i++) ids.push(await mesh.announceTrace(`t${groups++}`, tokens));
    return ids;
  };
  const open = (
    request: ConstructorParameters<typeof Trainer>[4] = {},
    { client } = one,
    maxUnacked = 16,
  ): Trainer => {
    const trainer = new Trainer(client, consumer, maxUnacked, '', request);
    trainers.push(trainer);
    return trainer;
  };
  const ack = async (...ids: number[]) =>
    await one.client.ackTrajectories({ consumer, batchIds: ids.map(BigInt) });
  const nack = async (ids: number[], delayMs = 0, reason = '') =>
    await one.client.nackTrajectories({
      consumer,
      batchIds: ids.map(BigInt),
      delayMs: BigInt(delayMs),
      reason,
    });
  const state = async () => (await one.client.listConsumers({})).consumers[0]!;

  describe('credit', () => {
    it('is counted in tokens, too, and always lets one batch out', async () => {
      const ids = [...(await announce(1, 500)), ...(await announce(3, 40))];
      const trainer = open({ maxUnackedTokens: 100n });
      expect(idsOf(await trainer.batches(1))).to.deep.equal(ids.slice(0, 1));
      await sleep(200);
      expect(await state(), 'nothing beside the large one').to.include({ pending: 4n });
      await ack(ids[0]!);
      expect(idsOf(await trainer.batches(2))).to.deep.equal(ids.slice(1, 3));
      const last = trainer.batch();
      await ack(ids[1]!);
      expect(Number((await last).batchId)).to.equal(ids[3]);
    });

    it('puts batches that are there into one message, up to its tokens', async () => {
      const ids = await announce(10, 40);
      const trainer = open({ messageTokens: 120 }, one, 4);
      expect(idsOf(await trainer.batches(4))).to.deep.equal(ids.slice(0, 4));
      // Meanwhile what is behind them is fetched.
      await sleep(300);
      await ack(...ids.slice(0, 4));
      const { batch, more } = await trainer.message();
      expect(idsOf([batch!, ...more])).to.deep.equal(ids.slice(4, 7));
      expect(Number((await trainer.message()).batch?.batchId), 'one more by the credit').to.equal(ids[7]);
    });
  });

  it('puts one batch into a message for who does not ask for more, also where batches hold no ids', async () => {
    const ids: number[] = [];
    for (const task of ['none-a', 'none-b', 'none-c']) ids.push(await mesh.announce({ taskId: task }));
    const trainer = open();
    for (const id of ids) {
      let message = await trainer.message();
      while (message.batch === undefined) message = await trainer.message();
      expect([Number(message.batch.batchId), message.more.length]).to.deep.equal([id, 0]);
    }
  });

  describe('nack', () => {
    it('brings a batch again after the delay, marked, with what was said', async () => {
      const ids = await announce(2);
      const trainer = open();
      await trainer.batches(2);
      const before = Date.now();
      expect(await nack([ids[0]!], 600, 'out of memory')).to.include({ waiting: 1 });
      expect(await nack([ids[0]!], 600, 'repeated')).to.include({ waiting: 1 });
      expect(await state()).to.include({ nacked: 1, pending: 2n });
      const again = await trainer.batch();
      expect(Date.now() - before, 'not before its delay').to.be.at.least(600);
      expect(again).to.include({ batchId: BigInt(ids[0]!), redelivered: true, deliveryCount: 2 });
      expect(again).to.include({ nackCount: 1, nackReason: 'out of memory' });
      expect(await ack(...ids)).to.include({ floor: BigInt(ids[1]!) });
      await nack(ids);
      expect(await state(), 'what is acknowledged stays so').to.include({ nacked: 0, pending: 0n });
    });

    it('holds across the end of the stream and of the reconstructor', async () => {
      const ids = await announce(2);
      await open().batches(2);
      const nackedAt = Date.now();
      await nack([ids[0]!], 1_500);
      await one[Symbol.asyncDispose]();
      one = await startReconstructor(nats.url);
      const trainer = open();
      expect(idsOf([await trainer.batch()]), 'what was only held comes at once').to.deep.equal([ids[1]]);
      const again = await trainer.batch();
      expect(Date.now() - nackedAt).to.be.at.least(1_500);
      expect(again).to.include({ batchId: BigInt(ids[0]!), nackCount: 1, deliveryCount: 2 });
    });

    it('is refused beyond its limits, and for what was never sent', async () => {
      const [id] = await announce(1);
      await open().batch();
      expect(await refused(nack([id!], NACK_DELAY_MAX_MS + 1))).to.include({ reason: 'INVALID_REQUEST' });
      const long = await refused(nack([id!], 0, 'x'.repeat(NACK_REASON_CHARS_MAX + 1)));
      expect(long.fields[0]).to.include({ field: 'reason' });
      expect(await refused(nack([id! + 1]))).to.include({ reason: 'INVALID_REQUEST' });
      const nobody = one.client.nackTrajectories({ consumer: 'nobody', batchIds: [1n] });
      expect(await refused(nobody)).to.include({ reason: 'NOT_FOUND' });
    });
  });

  describe('seek', () => {
    const seek = async (to: Parameters<typeof one.client.seekConsumer>[0]['to']) =>
      await one.client.seekConsumer({ consumer, to: to! });

    it('is told by every message that comes after it', async () => {
      const [id] = await announce(1);
      const trainer = open();
      const { seeks: before } = await trainer.message();
      await trainer.batches(1);
      await seek({ case: 'batchId', value: BigInt(id!) });
      while ((await trainer.message()).batch === undefined);
      await mesh.publishVersion(70);
      const progress = await trainer.message();
      expect(progress).to.deep.include({ policyVersion: 70n, seeks: before + 1n });
      const late = open();
      expect((await late.message()).seeks, 'the first message of a stream').to.equal(before + 1n);
    });

    it('makes acknowledgements of what came before it void, and tells them so', async () => {
      const [id] = await announce(1);
      const trainer = open();
      const { seeks: before } = await trainer.message();
      await trainer.batches(1);
      await seek({ case: 'target', value: SeekTarget.OLDEST });
      const batchIds = [BigInt(id!)];
      const again = await trainer.batch();
      expect(again).to.include({ batchId: BigInt(id!), redelivered: true });
      const seeks = before + 1n;
      const late = await one.client.ackTrajectories({ consumer, batchIds, seeks: before });
      expect(late).to.include({ floor: BigInt(id!) - 1n, seeks });
      const counted = await one.client.ackTrajectories({ consumer, batchIds, seeks });
      expect(counted).to.include({ floor: BigInt(id!), seeks });
    });

    it('goes back in an open stream; what came before is marked', async () => {
      const ids = await announce(3);
      const trainer = open();
      await trainer.batches(3);
      await ack(...ids);
      const { floor } = await seek({ case: 'batchId', value: BigInt(ids[1]!) });
      expect(Number(floor)).to.equal(ids[1]! - 1);
      const [second, third] = await trainer.batches(2);
      expect(idsOf([second!, third!])).to.deep.equal(ids.slice(1));
      expect(second).to.include({ redelivered: true, deliveryCount: 2 });
      expect(await state(), 'not acknowledged').to.include({ pending: 2n });
    });

    it('goes to the oldest, the newest and a time, also from another process', async () => {
      const ids = await announce(2);
      await sleep(50);
      const time = timestampFromMs(Date.now());
      await sleep(50);
      ids.push(...(await announce(2)));
      await using other = await startReconstructor(nats.url);
      const trainer = open({}, other);
      await trainer.batches(4);
      await seek({ case: 'target', value: SeekTarget.OLDEST });
      expect(idsOf(await trainer.batches(4))).to.deep.equal(ids);
      await seek({ case: 'time', value: time });
      expect(idsOf(await trainer.batches(2))).to.deep.equal(ids.slice(2));
      await seek({ case: 'target', value: SeekTarget.NEWEST });
      expect((await state()).pending).to.equal(0n);
      const [next] = await announce(1);
      const after = await trainer.batch();
      expect(after).to.include({ batchId: BigInt(next!), redelivered: false });
    });

    it('is refused out of range', async () => {
      const ids = await announce(3);
      await open().batches(3);
      await mesh.bus.jsm.streams.purge(STREAM, { seq: ids[1]! });
      const reason = async (to: Parameters<typeof seek>[0]) => (await refused(seek(to))).reason;
      expect(await reason({ case: 'batchId', value: BigInt(ids[0]!) }), 'removed').to.equal(
        'SEEK_OUT_OF_RANGE',
      );
      expect(await reason({ case: 'batchId', value: BigInt(ids[2]! + 2) })).to.equal('SEEK_OUT_OF_RANGE');
      const later = timestampFromMs(Date.now() + 60_000);
      expect(await reason({ case: 'time', value: later })).to.equal('SEEK_OUT_OF_RANGE');
      expect(await reason({ case: undefined })).to.equal('INVALID_REQUEST');
      await seek({ case: 'batchId', value: BigInt(ids[2]! + 1) });
      expect((await state()).pending).to.equal(0n);
    });
  });

  it('is deleted, which ends its stream, and begins anew', async () => {
    const ids = await announce(1);
    const trainer = open();
    await trainer.batch();
    await one.client.deleteConsumer({ consumer });
    expect(await trainer.error()).to.include({ reason: 'NOT_FOUND' });
    expect((await one.client.listConsumers({})).consumers).to.deep.equal([]);
    expect(await refused(one.client.deleteConsumer({ consumer }))).to.include({ reason: 'NOT_FOUND' });
    expect(await open().batch()).to.include({ batchId: BigInt(ids[0]!), redelivered: false });
  });

  it('is deleted where NATS has no room', async () => {
    await announce(1);
    await open().batch();
    const { config } = await mesh.bus.jsm.streams.info('KV_polar_cursors');
    await mesh.bus.jsm.streams.update(config.name, { ...config, max_bytes: 1 });
    try {
      await one.client.deleteConsumer({ consumer });
      expect((await one.client.listConsumers({})).consumers).to.deep.equal([]);
    } finally {
      await mesh.bus.jsm.streams.update(config.name, config);
    }
  });

  it('stays deleted when nats-server is killed', async () => {
    const [id] = await announce(1);
    await open().batch();
    await ack(id!);
    const other = new Trainer(one.client, 'other');
    trainers.push(other);
    await other.batch();
    await one.client.deleteConsumer({ consumer });
    await nats.kill();
    await nats.start();
    const names = async () => (await one.client.listConsumers({})).consumers.map(({ name }) => name);
    await eventually(
      'the other one is there, alone',
      async () => `${await names().catch(() => [])}` === 'other',
    );
    const isBack = (): Promise<boolean> => mesh.bus.jsm.getAccountInfo().then(Boolean, () => false);
    await eventually('this test is connected, too', isBack);
  });

  it('refuses to acknowledge another task than its own', async () => {
    const [first, second] = await announce(2);
    const task = `t${groups - 1}`;
    const trainer = new Trainer(one.client, consumer, 16, task);
    trainers.push(trainer);
    expect(Number((await trainer.batch()).batchId)).to.equal(second);
    const other = await refused(ack(first!));
    expect(other).to.include({ reason: 'INVALID_REQUEST' });
    expect(other.fields[0]).to.include({ field: 'batch_ids' });
    await ack(second!);
    await ack(second!);
    for (const none of [0n, BigInt(second!) + 1n, 2n ** 64n - 1n]) {
      const batchIds = [BigInt(second!), none];
      const acked = await refused(one.client.ackTrajectories({ consumer, batchIds }));
      expect(acked, `${none}`).to.include({ reason: 'INVALID_REQUEST' });
      const nacked = await refused(one.client.nackTrajectories({ consumer, batchIds }));
      expect(nacked, `${none}`).to.include({ reason: 'INVALID_REQUEST' });
    }
  });

  describe('shared', () => {
    it('gives each batch to one of its streams, and to the others when that breaks', async () => {
      const ids = await announce(6);
      await using other = await startReconstructor(nats.url);
      const first = open({ shared: true }, one, 3);
      const firsts = idsOf(await first.batches(3));
      const second = open({ shared: true }, other, 6);
      const seconds = idsOf(await second.batches(3));
      expect([...firsts, ...seconds].sort((a, b) => a - b)).to.deep.equal(ids);
      expect(await state()).to.include({ streams: 2, connected: true, pending: 6n });
      await ack(firsts[0]!, seconds[0]!);
      first.close();
      const taken = await second.batches(2);
      expect(idsOf(taken)).to.deep.equal(firsts.slice(1));
      expect(taken.every((batch) => batch.redelivered && batch.deliveryCount === 2)).to.equal(true);
    });

    it('ends where one stream is opened for itself', async () => {
      await announce(1);
      const sharing = open({ shared: true });
      await sharing.batch();
      const alone = open();
      expect(await sharing.error()).to.include({ reason: 'STREAM_REPLACED' });
      expect(await alone.batch()).to.include({ redelivered: true });
    });
  });

  describe('filter', () => {
    const announceGroups = async () => [
      await mesh.announceGroup(`f${groups++}`, [
        { reward: 1, min: 4 },
        { reward: 0, min: 9 },
      ]),
      await mesh.announceGroup(`f${groups++}`, [
        { reward: 1, min: 9 },
        { reward: 1, min: 9 },
      ]),
      await mesh.announceGroup(`f${groups++}`, [
        { reward: 1, min: 4 },
        { reward: 0, min: 9, max: 12 },
      ]),
    ];

    it('names what it drops, in the batch and in the counts of the consumer', async () => {
      await mesh.publishVersion(10);
      const ids = await announceGroups();
      await eventually('the version is known', async () => (await open().message()).policyVersion === 10n);
      const filter = { stalenessMax: 1n, policySpanMax: 2n };
      const [partly, equal, none] = await open({ filter }).batches(3);
      expect(partly).to.include({ droppedReason: '', policyVersion: 10n });
      const heads = partly!.trajectories.map((one) => [one.droppedReason, one.reward, one.policyVersionMin]);
      expect(heads).to.deep.equal([
        ['stale', 1, 4n],
        ['', 0, 9n],
      ]);
      expect(equal?.droppedReason).to.equal('');
      expect(none?.droppedReason).to.equal('sessions_dropped');
      expect((await state()).droppedSessions, 'not acknowledged yet').to.deep.equal({});
      await ack(...ids, ...ids);
      expect(await state()).to.deep.include({
        droppedGroups: { sessions_dropped: 1n },
        droppedSessions: { stale: 2n, policy_span: 1n },
        pending: 0n,
      });
    });

    it('may change from one stream to the next; what was dropped and not acknowledged is judged anew', async () => {
      await announceGroups();
      const strict = open({ filter: { dropZeroVariance: true } });
      const reasons = (await strict.batches(3)).map((batch) => batch.droppedReason);
      expect(reasons).to.deep.equal(['', 'zero_variance', '']);
      strict.close();
      const again = await open().batches(3);
      expect(again.map((batch) => [batch.droppedReason, batch.redelivered])).to.deep.equal(
        Array(3).fill(['', true]),
      );
      expect(again[1]?.trajectories.every((one) => one.traces.length === 1)).to.equal(true);
    });

    it('refuses a fraction that is none', async () => {
      const error = await open({ filter: { usableFractionMin: 1.5 } }).error();
      expect(error.fields[0]).to.include({ field: 'filter.usable_fraction_min' });
    });
  });

  it('tells a new policy version at once', async () => {
    const trainer = open();
    const before = (await trainer.message()).policyVersion;
    const next = trainer.message();
    await mesh.publishVersion(Number(before) + 7);
    const { batch, policyVersion } = await next;
    expect(batch).to.equal(undefined);
    expect(policyVersion).to.equal(before + 7n);
  });
});
