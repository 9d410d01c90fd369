// What a stream asks of NATS, and sends, where batches wait for credit or come again; over a real NATS server.
import { expect } from 'chai';
import { SeekTarget } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { unpackIds } from '../../services/common/columns.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { eventually } from '../support/eventually.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

const consumer = 'trainer';
const READS_OF_CURSORS = '$JS.API.STREAM.MSG.GET.KV_polar_cursors';
const GROUPS = 40;

describe('reconstructor: what comes again', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let one: TestReconstructor;
  const trainers: Trainer[] = [];
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    one = await startReconstructor(nats.url);
  });
  beforeEach(() => mesh.bus.jsm.streams.purge(STREAMS.trajectories.name));
  afterEach(async () => {
    for (const trainer of trainers.splice(0)) trainer.close();
    await one.client.deleteConsumer({ consumer });
  });
  after(async () => {
    await one[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  let groups = 0;
  const announce = async (count: number): Promise<bigint[]> => {
    const ids: bigint[] = [];
    for (let i = 0; i < count; i++) ids.push(BigInt(await mesh.announceTrace(`t${groups++}`, 4)));
    return ids;
  };
  const open = (maxUnacked: number, messageTokens = 0): Trainer => {
    const trainer = new Trainer(one.client, consumer, maxUnacked, '', { messageTokens });
    trainers.push(trainer);
    return trainer;
  };

  it('asks for the cursor no more often for what comes while there is no credit', async () => {
    await announce(1);
    await open(1).batch();
    let reads = 0;
    const counting = mesh.bus.nc.subscribe(READS_OF_CURSORS, { callback: () => reads++ });
    await one.client.ackTrajectories({ consumer });
    await eventually('a read of the cursor is seen', () => reads > 0);
    reads = 0;
    const began = performance.now();
    await announce(GROUPS);
    // It looks at its place each second.
    expect(reads).to.be.at.most(2 + (performance.now() - began) / 1000);
    counting.unsubscribe();
  });

  it('puts what comes again into messages as it does with what is new', async () => {
    const ids = await announce(GROUPS);
    const first = open(1000);
    await first.batches(GROUPS);
    first.close();
    const second = open(1000, 1_000_000);
    const found: { readonly batchId: bigint; readonly redelivered: boolean }[] = [];
    let messages = 0;
    while (found.length < GROUPS) {
      const { batch, more } = await second.message();
      if (batch === undefined) continue;
      messages++;
      found.push(batch, ...more);
    }
    expect(found.map(({ batchId }) => batchId)).to.deep.equal(ids);
    expect(found.every(({ redelivered }) => redelivered)).to.equal(true);
    expect(messages).to.be.below(found.length / 2);
  });

  it('gives every trace whole, however often it comes', async () => {
    // Some are written as they lie in memory, others together with what is beside them.
    const sizes = [40_000, 1_000, 5_000, 90_000, 200, 2_000, 30_000];
    for (const ids of sizes) await mesh.announceTrace(`t${groups++}`, ids, 2);
    const trainer = open(1000, 100_000);
    const check = async (what: string): Promise<bigint[]> => {
      const batches = await trainer.batches(sizes.length);
      for (const [i, { trajectories }] of batches.entries()) {
        for (const { traces } of trajectories) {
          const ids = unpackIds(traces[0]?.responseIds ?? new Uint8Array());
          expect(ids, `${what} ${i}`).to.deep.equal(
            Int32Array.from({ length: sizes[i] ?? 0 }, (_, id) => id),
          );
        }
      }
      return batches.map(({ batchId }) => batchId);
    };
    await one.client.nackTrajectories({ consumer, batchIds: await check('new') });
    await check('given back');
    await one.client.seekConsumer({ consumer, to: { case: 'target', value: SeekTarget.OLDEST } });
    await check('sought');
  });

  it('tells a trainer that was away while its consumer was deleted that nothing of before counts', async () => {
    const batchIds = await announce(1);
    const before = open(1);
    const { seeks } = await before.message();
    await before.batch();
    await one.client.ackTrajectories({ consumer, batchIds, seeks });
    before.close();
    await one.client.deleteConsumer({ consumer });
    const anew = open(1);
    expect(Number((await anew.message()).seeks)).to.be.above(Number(seeks));
    await anew.batch();
    const late = await one.client.ackTrajectories({ consumer, batchIds, seeks });
    expect(late.floor < batchIds[0]!, 'not acknowledged by what was done before').to.equal(true);
  });

  it('takes a call that gives back, and is repeated after the batch came again, as done', async () => {
    await announce(1);
    const trainer = open(1);
    const { batchId, deliveryCount } = await trainer.batch();
    const nack = { consumer, batchIds: [batchId], deliveryCounts: [deliveryCount], reason: 'lost' };
    await one.client.nackTrajectories(nack);
    const again = await trainer.batch();
    expect(again).to.include({ batchId, nackCount: 1 });
    expect(await one.client.nackTrajectories(nack)).to.include({ waiting: 0 });
    await one.client.nackTrajectories({ ...nack, deliveryCounts: [again.deliveryCount] });
    expect(await trainer.batch()).to.include({ batchId, nackCount: 2, deliveryCount: 3 });
    const refused = await one.client.nackTrajectories({ ...nack, deliveryCounts: [1, 1] }).catch((e) => e);
    expect(refused).to.include({ reason: 'INVALID_REQUEST' });
  });
});
