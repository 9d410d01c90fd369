import { create, fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { packFloats, packIds } from '../../common/columns.ts';
import { encodeTrajectory } from './encode.ts';

const trajectory = create(TrajectorySchema, {
  sessionId: 's',
  attempt: 2,
  reward: 0.5,
  policyVersionMax: 7n,
  drift: [{ callId: 'c', firstDifference: 3 }],
  traces: [
    {
      promptIds: packIds([1, 2]),
      responseIds: packIds(Int32Array.from({ length: 300 }, (_, i) => i)),
      lossMask: new Uint8Array(300).fill(1),
      logprobs: packFloats(new Float32Array(300).fill(-1)),
      spans: [{ callId: 'c', length: 300, policyRuns: [{ policyVersion: 7n, length: 300 }] }],
      routedExperts: { rows: Uint8Array.of(1, 2), known: Uint8Array.of(1), layers: 1, topK: 2, itemBytes: 1 },
      images: [{ digest: 'd', sizeBytes: 9n }],
      reward: 1,
    },
    { responseIds: packIds([4]) },
    {},
  ],
});

describe('an encoded trajectory', () => {
  it('is read back by the protobuf library as it was', () => {
    for (const one of [trajectory, create(TrajectorySchema)]) {
      expect(fromBinary(TrajectorySchema, encodeTrajectory(one))).to.deep.equal(one);
    }
  });
});
