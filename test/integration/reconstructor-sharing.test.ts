// What streams that share a consumer fetch of the store, over a real NATS server.
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import type { Cursor } from '../../gen/ts/polar/event/v1/work_pb.js';
import { Layout } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createLogger } from '../../services/common/logger.ts';
import { giveBack } from '../../services/common/memory.ts';
import { Cursors } from '../../services/reconstructor/cursors/cursors.ts';
import { acked, nacked } from '../../services/reconstructor/domain/cursor.ts';
import { decodedBatch } from '../../services/reconstructor/domain/stored.ts';
import { type Batches, createBatches } from '../../services/reconstructor/streams/batches.ts';
import { createPacks } from '../../services/reconstructor/streams/packs.ts';
import {
  openPolicyVersion,
  type PolicyVersion,
} from '../../services/reconstructor/streams/policy-version.ts';
import type { StreamRequest } from '../../services/reconstructor/streams/stream-parts.ts';
import { Streams, type TrajectoryStream } from '../../services/reconstructor/streams/streams.ts';
import { openTrajectoryLog } from '../../services/reconstructor/streams/trajectory-log.ts';
import { Wakeup } from '../../services/reconstructor/streams/wakeup.ts';
import { heldBytes } from '../support/held-bytes.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh } from '../support/reconstructor.ts';

const [GROUPS, STREAMS] = [40, 6];
const consumer = 'trainer';
const log = createLogger('test', 'silent');

const requestOf = (consumer: string, maxUnacked: number, taskId = ''): StreamRequest => ({
  ...{ consumer, taskId, messageTokens: 0, shared: true, filter: undefined, layout: Layout.TRACES },
  credit: { maxUnacked, maxUnackedTokens: 0n },
});

describe('reconstructor: streams of one process that share a consumer', () => {
  let nats: TestNats;
  let mesh: Mesh;
  let policy: PolicyVersion;
  const end = new AbortController();
  const opened: TrajectoryStream[] = [];
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    policy = await openPolicyVersion(mesh.bus, end.signal);
  });
  after(async () => {
    end.abort();
    await Promise.allSettled(opened.map((one) => one.return()));
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  it('fetch each group once, also where it comes again, and each of them goes to one', async () => {
    const ids: number[] = [];
    for (let i = 0; i < GROUPS; i++) ids.push(await mesh.announceTrace(`t${i}`, 1_000));
    using cursors = await Cursors.open(mesh.bus);
    using trajectories = openTrajectoryLog(mesh.bus, mesh.blobs);
    let fetched = 0;
    const stored = createBatches(mesh.blobs, createPacks(mesh.bus), log);
    const batches: Batches = {
      ...stored,
      resolve(...asked) {
        fetched++;
        return stored.resolve(...asked);
      },
    };
    const streams = new Streams({ cursors, trajectories, batches, policy, log });

    /** By as many streams as share it; they end when each group has come. */
    const readAll = async (maxUnacked: number, acks: boolean): Promise<number[]> => {
      const stop = new AbortController();
      const got: number[] = [];
      const read = async (): Promise<void> => {
        for await (const parcel of streams.open(requestOf(consumer, maxUnacked), stop.signal)) {
          for (const { batchId } of (parcel?.batches ?? []).map(({ batch }) => batch)) {
            got.push(Number(batchId));
            const ack = (cursor: Cursor | undefined): Cursor => acked(cursor as Cursor, [batchId]);
            if (acks) await cursors.update(consumer, ack, stop.signal);
            if (got.length === GROUPS) stop.abort(new Error('all have come'));
          }
        }
      };
      await Promise.allSettled(Array.from({ length: STREAMS }, read));
      return got.toSorted((a, b) => a - b);
    };

    expect(await readAll(Math.ceil(GROUPS / STREAMS), false)).to.deep.equal(ids);
    expect(fetched, 'new ones').to.be.at.most(GROUPS * 1.5);
    fetched = 0;
    expect(await readAll(2, true)).to.deep.equal(ids);
    expect(fetched, 'that came before').to.be.at.most(GROUPS * 1.5);
  });

  it('send a batch whole that another one has sent, and that was given back while they were about to', async () => {
    const name = 'both';
    using cursors = await Cursors.open(mesh.bus);
    using trajectories = openTrajectoryLog(mesh.bus, mesh.blobs);
    const isBack = Promise.withResolvers<void>();
    let writes = Number.NEGATIVE_INFINITY;
    const late: Pick<Cursors, 'get' | 'names' | 'known' | 'changed' | 'update'> = {
      get: (...asked) => cursors.get(...asked),
      names: (...asked) => cursors.names(...asked),
      known: (...asked) => cursors.known(...asked),
      changed: (...asked) => cursors.changed(...asked),
      update: async (...asked) => {
        if (++writes === 2) await isBack.promise;
        return await cursors.update(...asked);
      },
    };
    const batches = createBatches(mesh.blobs, createPacks(mesh.bus), log);
    const streams = new Streams({ cursors: late as Cursors, trajectories, batches, policy, log });
    const both = [0, 1].map(() => streams.open(requestOf(name, 1, name), end.signal));
    opened.push(...both);
    for (const one of both) await one.next();
    // From here on the first write is that of the one which sends, the second that of the other.
    writes = 0;
    const coming = both.map((one) => one.next());
    const batchId = BigInt(await mesh.announceTrace(name, 1_000));
    const first = await Promise.race(coming);
    giveBack(first.value?.memory ?? []);
    const nack = { batchIds: [batchId], deliveryCounts: [], delayMs: 0, nowMs: Date.now(), reason: '' };
    await cursors.update(name, (cursor) => nacked(cursor as Cursor, nack), end.signal);
    isBack.resolve();
    const [one, other] = await Promise.all(coming);
    const [again] = (one === first ? other : one)?.value?.batches ?? [];
    const whole = again && decodedBatch(again.batch);
    expect(whole).to.include({ batchId, deliveryCount: 2 });
    expect(whole?.trajectories[0]?.traces[0]?.responseIds.byteLength).to.equal(4_000);
  });

  it('hold no more the longer they wait for a batch', async () => {
    using cursors = await Cursors.open(mesh.bus);
    using trajectories = openTrajectoryLog(mesh.bus, mesh.blobs);
    const versions: PolicyVersion = { current: 0n, changed: new Wakeup() };
    const batches = createBatches(mesh.blobs, createPacks(mesh.bus), log);
    const streams = new Streams({ cursors, trajectories, batches, policy: versions, log });
    const stream = streams.open(requestOf('waits', 1, 'waits'), end.signal);
    opened.push(stream);
    await stream.next();
    /** Progress without a batch, as every few seconds. */
    const waitOn = async (times: number): Promise<number> => {
      for (let i = 0; i < times; i++) {
        const progress = stream.next();
        await setImmediate();
        versions.changed.wake();
        expect((await progress).value).to.equal(undefined);
      }
      return heldBytes();
    };
    const before = await waitOn(1_000);
    expect(((await waitOn(5_000)) - before) / 5_000, 'bytes each').to.be.below(200);
  });
});
