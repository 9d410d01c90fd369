// What streams that share a consumer fetch of the store, over a real NATS server.
import { expect } from 'chai';
import type { Cursor } from '../../gen/ts/polar/event/v1/work_pb.js';
import { createLogger } from '../../services/common/logger.ts';
import { type Batches, createBatches } from '../../services/reconstructor/adapters/batches.ts';
import { Cursors } from '../../services/reconstructor/adapters/cursors.ts';
import { openPolicyVersion } from '../../services/reconstructor/adapters/policy-version.ts';
import { Streams } from '../../services/reconstructor/adapters/streams.ts';
import { openTrajectoryLog } from '../../services/reconstructor/adapters/trajectory-log.ts';
import { acked } from '../../services/reconstructor/domain/cursor.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh } from '../support/reconstructor.ts';

const [GROUPS, STREAMS] = [40, 6];
const consumer = 'trainer';

describe('reconstructor: streams of one process that share a consumer', () => {
  let nats: TestNats;
  let mesh: Mesh;
  const end = new AbortController();
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
  });
  after(async () => {
    end.abort();
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  it('fetch each group once, also where it comes again, and each of them goes to one', async () => {
    const ids: number[] = [];
    for (let i = 0; i < GROUPS; i++) ids.push(await mesh.announceTrace(`t${i}`, 1_000));
    const log = createLogger('test', 'silent');
    using cursors = await Cursors.open(mesh.bus);
    using trajectories = openTrajectoryLog(mesh.bus, mesh.blobs);
    const policy = await openPolicyVersion(mesh.bus, end.signal);
    let fetched = 0;
    const stored = createBatches(mesh.blobs, log);
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
      const request = {
        ...{ consumer, taskId: '', messageTokens: 0, shared: true, filter: undefined },
        credit: { maxUnacked, maxUnackedTokens: 0n },
      };
      const got: number[] = [];
      const read = async (): Promise<void> => {
        for await (const parcel of streams.open(request, stop.signal)) {
          for (const { batchId } of parcel?.batches ?? []) {
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
});
