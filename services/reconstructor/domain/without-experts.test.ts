import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Trajectory, TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { countDropped, Fitting, withoutExperts } from './without-experts.ts';

const CALLS = 3;
const trace = (rows: number): object => ({
  promptIds: new Uint8Array(8),
  responseIds: new Uint8Array(12).fill(7),
  lossMask: new Uint8Array(3).fill(1),
  spans: Array.from({ length: CALLS }, (_, i) => ({ callId: `c${i}`, start: i, length: 1 })),
  ...(rows > 0 && { routedExperts: { rows: new Uint8Array(rows), layers: 1, topK: 1, itemBytes: 1 } }),
  images: [{ digest: 'd', part: 1 }],
  reward: 0.5,
});
const built = (...rows: readonly number[]): Trajectory =>
  create(TrajectorySchema, {
    sessionId: 's',
    builder: 'prefix_merging',
    traces: rows.map(trace),
    stats: { calls: 6, expertsDropped: { absent: 2, too_large: 1 } },
  } as object);
const stored = (...rows: readonly number[]): Uint8Array => toBinary(TrajectorySchema, built(...rows));

describe('a trajectory without its routed experts', () => {
  it('has all else, and says of how many calls they were', () => {
    const { bytes, calls } = withoutExperts(stored(5, 0, 70_000));
    expect(fromBinary(TrajectorySchema, bytes)).to.deep.equal(built(0, 0, 0));
    expect(calls).to.equal(2 * CALLS);
    expect(withoutExperts(stored(0))).to.deep.equal({ bytes: Buffer.from(stored(0)), calls: 0 });
  });

  it('counts them beside those that were left out before', () => {
    const trajectory = built();
    const { stats } = trajectory;
    countDropped(trajectory, 4);
    expect(trajectory.stats?.expertsDropped).to.deep.equal({ absent: 2, too_large: 5 });
    expect(trajectory.stats?.calls).to.equal(6);
    expect(stats?.expertsDropped, 'what it was').to.deep.equal({ absent: 2, too_large: 1 });
  });

  it('is what the first ones of a group become, until the rest fits', () => {
    const group = [stored(1_000), stored(1_000), stored(1_000)];
    const whole = group.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const left = (bytesMax: number): number[] => {
      const fitting = new Fitting(whole, bytesMax);
      return group.map((one) => fitting.keep(one).calls);
    };
    expect(left(whole)).to.deep.equal([0, 0, 0]);
    expect(left(whole - 1)).to.deep.equal([CALLS, 0, 0]);
    expect(left(whole - 1_100)).to.deep.equal([CALLS, CALLS, 0]);
    expect(left(1)).to.deep.equal([CALLS, CALLS, CALLS]);
  });
});
