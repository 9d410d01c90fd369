import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { StreamTrajectoriesResponseSchema } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { decodedBatch, field, moveTraces, storedTrajectory, tokensOf, tracesOf } from './stored.ts';

const column = (ids: number): Uint8Array => new Uint8Array(new Int32Array(ids).fill(ids).buffer);

const built = (...lengths: readonly number[]): Trajectory =>
  create(TrajectorySchema, {
    sessionId: 's',
    policyVersionMin: 3n,
    builder: 'prefix_merging',
    traces: lengths.map((length) => ({
      promptIds: column(length * 2),
      responseIds: column(length),
      lossMask: new Uint8Array(length),
      spans: [{ callId: `c-${length}`, length }],
    })),
  });

const storedOf = (trajectory: Trajectory): Trajectory =>
  storedTrajectory(toBinary(TrajectorySchema, trajectory));

const batchOf = (...trajectories: Trajectory[]): TrajectoryBatch =>
  create(TrajectoryBatchSchema, { batchId: 5n, taskId: 't', trajectories, deliveryCount: 2 });

describe('stored trajectory', () => {
  it('has all fields but its traces, which can be moved to another', () => {
    const stored = storedOf(built(2, 300));
    expect(stored).to.deep.include({
      sessionId: 's',
      policyVersionMin: 3n,
      builder: 'prefix_merging',
      traces: [],
    });
    const other = moveTraces(stored, create(TrajectorySchema, { sessionId: 's', reward: 1 }));
    const { traces } = fromBinary(TrajectorySchema, toBinary(TrajectorySchema, other));
    expect(traces).to.deep.equal(built(2, 300).traces);
  });

  it('counts its token ids as a decoded one does', () => {
    for (const lengths of [[], [0], [1], [2, 300, 70_000]]) {
      const want = lengths.reduce((sum, length) => sum + length * 3, 0);
      expect(tokensOf(built(...lengths))).to.equal(want);
      expect(tokensOf(storedOf(built(...lengths)))).to.equal(want);
    }
  });

  it('goes into a message in pieces that say the same as the whole', () => {
    const whole = batchOf(built(2, 300), built(), built(40));
    const batch = batchOf(storedOf(built(2, 300)), storedOf(built()), storedOf(built(40)));
    expect(decodedBatch(batch)).to.deep.equal(whole);
    const parts = field(StreamTrajectoriesResponseSchema.field.batch.number, tracesOf(batch));
    const message = fromBinary(StreamTrajectoriesResponseSchema, Buffer.concat(parts));
    expect(message.batch).to.deep.equal(whole);
  });

  it('is not made of what is no trajectory', () => {
    expect(() => storedTrajectory(Buffer.from([0x4a, 200]))).to.throw();
    expect(() => storedTrajectory(Buffer.from([0x0a, 3, 1]))).to.throw();
  });
});
