// A group that is too large for a batch: what is beside the trained ids goes first. Over a real NATS server.
import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type GroupReady, GroupReadySchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { Layout } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { type TrajectoryBatch, TrajectorySchema } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { createLogger } from '../../services/common/logger.ts';
import type { BlobStore } from '../../services/common/nats/blobs.ts';
import { decodedBatch } from '../../services/reconstructor/domain/stored.ts';
import { createBatches, type Resolved } from '../../services/reconstructor/streams/batches.ts';
import { createPacks } from '../../services/reconstructor/streams/packs.ts';
import { openTrajectoryLog } from '../../services/reconstructor/streams/trajectory-log.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { Mesh } from '../support/reconstructor.ts';

const IDS = 1_000;
/** Of a trajectory, about. */
const [TRAINED_BYTES, ROWS_BYTES] = [IDS * 9, IDS * 40];
const SAMPLES = 4;

describe('reconstructor: a group above the limit of a batch', () => {
  const { signal } = new AbortController();
  let nats: TestNats;
  let mesh: Mesh;
  before(async () => {
    nats = await startNats();
    mesh = await Mesh.open(nats.url);
    await announce();
  });
  after(async () => {
    await mesh.close();
    await nats[Symbol.asyncDispose]();
  });

  async function announce(): Promise<void> {
    const sessions: object[] = [];
    for (let sampleIndex = 0; sampleIndex < SAMPLES; sampleIndex++) {
      const sessionId = `s-${sampleIndex}`;
      const routedExperts = {
        rows: new Uint8Array(ROWS_BYTES).fill(sampleIndex + 1),
        known: new Uint8Array(IDS).fill(1),
        layers: 5,
        topK: 8,
        itemBytes: 1,
      };
      const trace = {
        responseIds: new Uint8Array(IDS * 4).fill(sampleIndex),
        lossMask: new Uint8Array(IDS).fill(1),
        logprobs: new Uint8Array(IDS * 4),
        spans: [{ callId: 'a' }, { callId: 'b' }],
        routedExperts,
      };
      const stats = { calls: 2, expertsDropped: { absent: 1 } };
      const built = create(TrajectorySchema, { sessionId, traces: [trace], stats } as object);
      const trajectory = await mesh.blobs.put(toBinary(TrajectorySchema, built));
      sessions.push({
        sessionId,
        sampleIndex,
        attempt: 1,
        outcome: Outcome.COMPLETED,
        reward: 1,
        stats,
        trajectory,
      });
    }
    const group = create(GroupReadySchema, { sessions } as object);
    await mesh.announce({ taskId: 't', sessions: group.sessions as GroupReady['sessions'] });
  }

  async function resolved(
    bytesMax: number,
    blobs = mesh.blobs,
  ): Promise<{ of: Resolved; batch: TrajectoryBatch; room: number }> {
    using log = openTrajectoryLog(mesh.bus, mesh.blobs);
    const stored = await log.after(0, '', signal);
    const logger = createLogger('test', 'silent');
    let room = 0;
    const batches = createBatches(blobs, createPacks(mesh.bus), logger, bytesMax);
    const of = await batches.resolve(stored!, Layout.TRACES, signal, async (bytes) => {
      room = bytes;
    });
    return { of, batch: decodedBatch(of.batch), room };
  }

  const withRows = ({ trajectories }: TrajectoryBatch): boolean[] =>
    trajectories.map(({ traces }) => traces[0]?.routedExperts !== undefined);

  it('comes without the routed experts of as many sessions as it must, and with all that is trained', async () => {
    for (let fit = 0; fit <= SAMPLES; fit++) {
      const bytesMax = SAMPLES * (TRAINED_BYTES + 200) + fit * (ROWS_BYTES + IDS);
      const { of, batch, room } = await resolved(bytesMax);
      const lost = SAMPLES - fit;
      const want = Array.from({ length: SAMPLES }, (_, i) => i >= lost);
      expect(withRows(batch), `room for the rows of ${fit}`).to.deep.equal(want);
      expect(of.tokens).to.equal(SAMPLES * IDS);
      expect(Math.max(of.sizeBytes, room)).to.be.at.most(bytesMax);
      for (const [i, { reward, failure, stats, traces }] of batch.trajectories.entries()) {
        expect({ reward, failure }).to.deep.equal({ reward: 1, failure: undefined });
        expect(traces[0]?.responseIds).to.deep.equal(new Uint8Array(IDS * 4).fill(i));
        const dropped = i >= lost ? { absent: 1 } : { absent: 1, too_large: 2 };
        expect(stats?.expertsDropped).to.deep.equal(dropped);
      }
    }
  });

  it('is given up by name where that is not enough', async () => {
    const { batch, of } = await resolved(SAMPLES * TRAINED_BYTES);
    expect(batch.trajectories.map(({ failure }) => failure?.reason)).to.deep.equal(
      Array(SAMPLES).fill('BATCH_TOO_LARGE'),
    );
    expect(batch.trajectories[0]?.failure?.message).to.include('BATCH_BYTES_MAX');
    expect(of.sizeBytes).to.equal(0);
  });

  it('is fetched no further than it fits when it is given up', async () => {
    let fetched = 0;
    const counting: BlobStore = {
      ...mesh.blobs,
      get(ref, aborted) {
        fetched++;
        return mesh.blobs.get(ref, aborted);
      },
    };
    const { batch } = await resolved(TRAINED_BYTES + 200, counting);
    expect(batch.trajectories.map(({ failure }) => failure?.reason)).to.deep.equal(
      Array(SAMPLES).fill('BATCH_TOO_LARGE'),
    );
    expect(fetched).to.equal(2);
  });
});
