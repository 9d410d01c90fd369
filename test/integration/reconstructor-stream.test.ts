// Trajectory streams to named consumers, over a real NATS server that gets killed.
import { create, fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { headers } from 'nats';
import { BlobRefSchema } from '../../gen/ts/polar/common/v1/blob_pb.js';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Cursor, CursorSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { STREAM_PROGRESS_MS } from '../../services/common/limits.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { seeded } from '../support/laws.ts';
import { freePort, startNats, type TestNats } from '../support/nats.ts';
import { Mesh, startReconstructor, type TestReconstructor, Trainer } from '../support/reconstructor.ts';

describe('reconstructor: stream', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let reconstructor: TestReconstructor;
  let port: number;
  beforeEach(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    port = await freePort();
    reconstructor = await startReconstructor(nats.url, { port });
  });
  afterEach(async () => {
    await reconstructor[Symbol.asyncDispose]();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  const restart = async (): Promise<void> => {
    await reconstructor[Symbol.asyncDispose]();
    reconstructor = await startReconstructor(nats.url, { port });
  };
  const ack = async (consumer: string, ...batchIds: number[]): Promise<number> => {
    const ids = batchIds.map(BigInt);
    return Number((await reconstructor.client.ackTrajectories({ consumer, batchIds: ids })).floor);
  };
  const cursorOf = async (consumer: string): Promise<Cursor> => {
    const subject = { last_by_subj: `$KV.polar_cursors.${consumer}` };
    return fromBinary(
      CursorSchema,
      (await mesh.bus.jsm.streams.getMessage('KV_polar_cursors', subject)).data,
    );
  };
  const announceMany = async (count: number): Promise<number[]> => {
    const ids: number[] = [];
    for (let i = 0; i < count; i++) ids.push(await mesh.announceTrace(`t${i}`, 4));
    return ids;
  };
  const ids = (batches: readonly { readonly batchId: bigint }[]): number[] =>
    batches.map(({ batchId }) => Number(batchId));

  it('sends what is there, then what comes, with outcome, reward and traces', async () => {
    const [first] = await announceMany(1);
    const trainer = new Trainer(reconstructor.client, 'trainer');
    const batch = await trainer.batch();
    expect(Number(batch.batchId)).to.equal(first);
    expect(batch).to.include({ taskId: 't0', groupId: 'g0', redelivered: false });
    const [trajectory] = batch.trajectories;
    expect(trajectory).to.include({ sessionId: 't0-0', attempt: 1, outcome: Outcome.COMPLETED, reward: 1 });
    expect([...new Int32Array(trajectory!.traces[0]!.responseIds.slice().buffer)]).to.deep.equal([
      0, 1, 2, 3,
    ]);
    const coming = trainer.batch();
    const second = await mesh.announceTrace('later', 4);
    expect(Number((await coming).batchId)).to.equal(second);
    trainer.close();
  });

  it('never sends again what was acknowledged, and marks what was not', async () => {
    const all = await announceMany(6);
    const trainer = new Trainer(reconstructor.client, 'trainer');
    expect(ids(await trainer.batches(4))).to.deep.equal(all.slice(0, 4));
    expect(await ack('trainer', all[0]!, all[2]!)).to.equal(all[1]! - 1);
    expect(await ack('trainer', all[0]!), 'safe to repeat').to.equal(all[1]! - 1);
    trainer.close();
    await restart();
    const again = new Trainer(reconstructor.client, 'trainer', 16);
    const batches = await again.batches(4);
    // The last two may have been sent before the first stream ended.
    const before = new Set((await cursorOf('trainer')).unacked.map((one) => Number(one.batchId)));
    expect(ids(batches)).to.deep.equal([all[1], all[3], all[4], all[5]]);
    expect(batches.slice(0, 2).map((batch) => batch.redelivered)).to.deep.equal([true, true]);
    expect(before.size).to.equal(4);
    expect(await ack('trainer', ...ids(batches))).to.equal(all[5]);
    again.close();
  });

  it('keeps what was acknowledged, and loses nothing else, through kills of the NATS server', async () => {
    const all: number[] = [];
    for (let round = 0; round < 3; round++) {
      const trainer = new Trainer(reconstructor.client, 'trainer', 4);
      for (let i = 0; i < 6; i++) all.push(await mesh.announceTrace(`r${round}-${i}`, 4));
      const batches = await trainer.batches(4);
      expect(ids(batches), `round ${round}`).to.deep.equal(all.slice(round * 2, round * 2 + 4));
      await ack('trainer', ...ids(batches.slice(0, 2)));
      await nats.kill();
      await nats.start();
      // The same stream goes on.
      expect(ids(await trainer.batches(2))).to.deep.equal(all.slice(round * 2 + 4, round * 2 + 6));
      trainer.close();
      await restart();
    }
    const trainer = new Trainer(reconstructor.client, 'trainer', 100);
    const rest = ids(await trainer.batches(12));
    expect(rest).to.deep.equal(all.slice(6));
    trainer.close();
  }).timeout(120_000);

  it('keeps acknowledgements that a killed server has only just confirmed', async () => {
    const all = await announceMany(30);
    const trainer = new Trainer(reconstructor.client, 'trainer', 100);
    const batches = await trainer.batches(30);
    for (const batch of batches.slice(0, 15)) await ack('trainer', Number(batch.batchId));
    await nats.kill();
    trainer.close();
    await nats.start();
    await restart();
    const again = new Trainer(reconstructor.client, 'trainer', 100);
    expect(ids(await again.batches(15))).to.deep.equal(all.slice(15));
    again.close();
  });

  it('sends nothing again that was acknowledged, however often a trainer comes back', async () => {
    const GROUPS = 80;
    const random = seeded(3);
    await using other = await startReconstructor(nats.url);
    const announcing = (async () => {
      for (let i = 0; i < GROUPS; i++) await mesh.announceTrace(`t${i}`, 4);
    })();
    const done = new Set<number>();
    let again = 0;
    let killed = false;
    while (done.size < GROUPS) {
      const { client } = random() < 0.5 ? reconstructor : other;
      const trainer = new Trainer(client, 'trainer', 1 + Math.floor(random() * 8));
      for (let left = 1 + Math.floor(random() * 20); left > 0 && done.size < GROUPS; left--) {
        const { batchId, redelivered } = await trainer.batch();
        const id = Number(batchId);
        expect(done.has(id), `batch ${id}`).to.equal(false);
        if (redelivered) again++;
        // Without an acknowledgement it must come again, once this stream has ended.
        if (random() < 0.2) break;
        const acking = random() < 0.5 ? reconstructor : other;
        await acking.client.ackTrajectories({ consumer: 'trainer', batchIds: [batchId] });
        done.add(id);
      }
      if (!killed && done.size > GROUPS / 2) {
        killed = true;
        await nats.kill();
        await nats.start();
      }
      // Left open sometimes: the next one has to take over.
      if (random() < 0.7) trainer.close();
    }
    await announcing;
    expect(again).to.be.greaterThan(0);
    const { consumers } = await reconstructor.client.listConsumers({});
    expect(consumers[0]).to.include({ floor: BigInt(Math.max(...done)), ackedAboveFloor: 0, pending: 0n });
  }).timeout(120_000);

  it('sends no more than the credit, whichever process takes the acknowledgements', async () => {
    const all = await announceMany(5);
    const trainer = new Trainer(reconstructor.client, 'trainer', 2);
    expect(ids(await trainer.batches(2))).to.deep.equal(all.slice(0, 2));
    let came = false;
    const third = trainer.batch().finally(() => {
      came = true;
    });
    await sleep(300);
    expect(came).to.equal(false);
    await using other = await startReconstructor(nats.url);
    await other.client.ackTrajectories({ consumer: 'trainer', batchIds: [BigInt(all[1]!)] });
    expect(Number((await third).batchId)).to.equal(all[2]);
    const fourth = trainer.batch();
    await ack('trainer', all[0]!);
    expect(Number((await fourth).batchId)).to.equal(all[3]);
    trainer.close();
  });

  it('ends the older stream of a consumer when a newer one is opened, here or in another process', async () => {
    const [first, second] = await announceMany(2);
    const older = new Trainer(reconstructor.client, 'trainer', 1);
    await older.batch();
    const newer = new Trainer(reconstructor.client, 'trainer', 1);
    expect(await older.error()).to.include({ reason: 'STREAM_REPLACED' });
    expect(await newer.batch()).to.include({ batchId: BigInt(first!), redelivered: true });
    await using other = await startReconstructor(nats.url);
    const newest = new Trainer(other.client, 'trainer', 1);
    expect(await newer.error()).to.include({ reason: 'STREAM_REPLACED' });
    expect(Number((await newest.batch()).batchId)).to.equal(first);
    await ack('trainer', first!);
    expect(Number((await newest.batch()).batchId)).to.equal(second);
    newest.close();
  });

  it('gives each consumer its own cursor, and one task only where that is asked', async () => {
    const all = await announceMany(3);
    const one = new Trainer(reconstructor.client, 'one');
    const two = new Trainer(reconstructor.client, 'two', 16, 't1');
    expect(ids(await one.batches(3))).to.deep.equal(all);
    expect(ids(await two.batches(1))).to.deep.equal([all[1]]);
    await ack('two', all[1]!);
    await ack('one', all[0]!, all[2]!);
    const { consumers } = await reconstructor.client.listConsumers({});
    const open = { connected: true, streams: 1, nacked: 0, droppedGroups: {}, droppedSessions: {} };
    expect(consumers.map(({ $typeName: _, ...consumer }) => consumer)).to.deep.equal([
      { name: 'one', floor: BigInt(all[0]!), ackedAboveFloor: 1, pending: 1n, ...open },
      { name: 'two', floor: BigInt(all[1]!), ackedAboveFloor: 0, pending: 0n, ...open },
    ]);
    one.close();
    two.close();
    await eventually('both are seen to have gone', async () => {
      const now = await reconstructor.client.listConsumers({});
      return now.consumers.length === 2 && now.consumers.every((consumer) => !consumer.connected);
    });
    const other = await new Trainer(reconstructor.client, 'two', 16, 't2').error();
    expect(other).to.include({ reason: 'INVALID_REQUEST' });
    expect(other.fields).to.deep.equal([{ field: 'task_id', description: 'must be t1' }]);
  });

  it('refuses a bad request by its fields, and acknowledgements that cannot be meant', async () => {
    const error = await new Trainer(reconstructor.client, 'No!', 1001).error();
    expect(error.reason).to.equal('INVALID_REQUEST');
    expect(error.fields.map(({ field }) => field)).to.deep.equal(['consumer', 'max_unacked']);
    // Places in a NATS subject, and a command of its own.
    for (const taskId of ['*', '>', 'a b', 'x\r\nPUB polar.v1.work.build 0\r\n\r\n', 'x'.repeat(129)]) {
      const refused = await new Trainer(reconstructor.client, 'trainer', 1, taskId).error();
      expect(refused).to.include({ reason: 'INVALID_REQUEST' });
      expect(refused.fields.map(({ field }) => field)).to.deep.equal(['task_id']);
    }
    expect((await reconstructor.client.listConsumers({})).consumers).to.deep.equal([]);
    const nobody = await ack('nobody', 1).catch((reason) => reason);
    expect(nobody).to.include({ reason: 'NOT_FOUND' });
    const trainer = new Trainer(reconstructor.client, 'trainer');
    await trainer.message();
    const ahead = await ack('trainer', 99).catch((reason) => reason);
    expect(ahead).to.include({ reason: 'INVALID_REQUEST' });
    trainer.close();
  });

  it('tells a lost trajectory by type, without its reward, and sends the rest', async () => {
    const gone = create(BlobRefSchema, { sha256: 'e'.repeat(64), sizeBytes: 9n });
    const there = await mesh.putTrajectory('a-1', 4);
    const result = { attempt: 1, outcome: Outcome.COMPLETED, reward: 0.5 };
    await mesh.announce({
      taskId: 'a',
      sessions: [
        { ...result, sessionId: 'a-0', sampleIndex: 0, trajectory: gone },
        { ...result, sessionId: 'a-1', sampleIndex: 1, trajectory: there },
      ] as never,
    });
    const lost = headers();
    lost.set('Polar-Blob-Sha256', 'd'.repeat(64));
    lost.set('Polar-Blob-Size', '9');
    await mesh.bus.js.publish(subjects.trajectory('b.c', 'g0'), new Uint8Array(), { headers: lost });
    const last = await mesh.announceTrace('c', 4);

    const trainer = new Trainer(reconstructor.client, 'trainer');
    const [partly, whole, after] = await trainer.batches(3);
    const [first, second] = partly!.trajectories;
    expect(first?.failure).to.include({ reason: 'BLOB_MISSING', infrastructure: true });
    expect(first).to.include({ sessionId: 'a-0', outcome: Outcome.INFRASTRUCTURE_ERROR });
    expect(first?.reward).to.equal(undefined);
    expect(second).to.include({ sessionId: 'a-1', outcome: Outcome.COMPLETED, reward: 0.5 });
    expect(second?.traces.length).to.equal(1);
    expect(whole).to.include({ taskId: 'b.c', groupId: 'g0' });
    expect(whole?.trajectories[0]?.failure?.reason).to.equal('BLOB_MISSING');
    expect(Number(after?.batchId)).to.equal(last);
    trainer.close();
  });

  it('does not wait for a batch that was removed from the stream', async () => {
    const all = await announceMany(3);
    const trainer = new Trainer(reconstructor.client, 'trainer', 2);
    await trainer.batches(2);
    trainer.close();
    await mesh.bus.jsm.streams.deleteMessage(STREAMS.trajectories.name, all[0]!);
    const again = new Trainer(reconstructor.client, 'trainer', 3);
    expect(ids(await again.batches(2))).to.deep.equal([all[1], all[2]]);
    expect(await ack('trainer', all[1]!, all[2]!)).to.equal(all[2]);
    again.close();
  });

  it('sends groups of megabytes, and holds back while the trainer does not read', async () => {
    const large = await mesh.announceTrace('large', 1_000_000, 4);
    for (let i = 0; i < 8; i++) await mesh.announceTrace(`more${i}`, 200_000);
    const trainer = new Trainer(reconstructor.client, 'trainer', 1000);
    const batch = await trainer.batch();
    expect(Number(batch.batchId)).to.equal(large);
    expect(batch.trajectories.map(({ traces }) => traces[0]?.responseIds.length)).to.deep.equal(
      Array(4).fill(4_000_000),
    );
    await sleep(1_000);
    const unread = (await cursorOf('trainer')).unacked.length;
    expect(unread).to.be.lessThan(7);
    expect((await trainer.batches(8)).length).to.equal(8);
    trainer.close();
  });

  it('says that it is there while nothing comes', async () => {
    const trainer = new Trainer(reconstructor.client, 'trainer');
    expect((await trainer.message()).batch, 'at the open').to.equal(undefined);
    const startedAt = performance.now();
    expect((await trainer.message()).batch).to.equal(undefined);
    expect(performance.now() - startedAt).to.be.at.least(STREAM_PROGRESS_MS - 100);
    trainer.close();
  });

  it('tells a policy version that changed while the trainer was not reading as soon as it reads', async () => {
    await mesh.announceTrace('large', 500_000);
    const trainer = new Trainer(reconstructor.client, 'trainer');
    await trainer.message();
    await eventually('it is on its way', async () => {
      const { consumers } = await reconstructor.client.listConsumers({});
      return consumers[0]?.pending === 1n && (await cursorOf('trainer')).unacked.length === 1;
    });
    await mesh.publishVersion(7);
    await sleep(50);
    await trainer.batch();
    const startedAt = performance.now();
    expect((await trainer.message()).policyVersion).to.equal(7n);
    expect(performance.now() - startedAt).to.be.at.most(STREAM_PROGRESS_MS / 4);
    trainer.close();
  });

  describe('whose log has lost what was sent, as after a loss of power', () => {
    let trainer: Trainer;
    let seeks: bigint;
    beforeEach(async () => {
      const all = await announceMany(3);
      trainer = new Trainer(reconstructor.client, 'trainer');
      ({ seeks } = await trainer.message());
      await trainer.batches(3);
      await ack('trainer', ...all.slice(0, 2));
    });
    afterEach(() => trainer.close());
    const lose = async (): Promise<void> => {
      await mesh.bus.jsm.streams.delete(STREAMS.trajectories.name);
      await mesh.bus.jsm.streams.add(STREAMS.trajectories);
    };
    const tasks = (batches: readonly { readonly taskId: string; readonly redelivered: boolean }[]) =>
      batches.map(({ taskId, redelivered }) => [taskId, redelivered]);
    const announceNew = async (count: number): Promise<[string, boolean][]> => {
      const names = Array.from({ length: count }, (_, i) => `new${count}-${i}`);
      for (const name of names) await mesh.announceTrace(name, 4);
      return names.map((name) => [name, false]);
    };

    for (const count of [1, 3, 5]) {
      it(`sends all that has come since: ${count} in the place of 3`, async () => {
        trainer.close();
        await lose();
        const all = await announceNew(count);
        trainer = new Trainer(reconstructor.client, 'trainer');
        expect((await trainer.message()).seeks).to.equal(seeks + 1n);
        expect(tasks(await trainer.batches(count))).to.deep.equal(all);
      });
    }

    it('sends it in a stream that stays open, too', async () => {
      await lose();
      const all = await announceNew(1);
      expect(tasks([await trainer.batch()])).to.deep.equal(all);
      await ack('trainer', 1);
      await lose();
      const more = await announceNew(2);
      expect(tasks(await trainer.batches(2))).to.deep.equal(more);
    });

    it('sends nothing again that is kept, and is acknowledged', async () => {
      trainer.close();
      await mesh.bus.jsm.streams.purge(STREAMS.trajectories.name);
      const all = await announceNew(1);
      trainer = new Trainer(reconstructor.client, 'trainer');
      expect(tasks([await trainer.batch()])).to.deep.equal(all);
    });
  });
});
