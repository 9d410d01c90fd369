import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type TraceReward, TraceRewardSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  type Trajectory,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { decodedBatch, field, storedTrajectory, tokensOf, tracesOf } from './stored.ts';
import { rewardsIn, rewardTraces } from './trace-rewards.ts';

/** A trace for each list of calls. */
const built = (...traces: readonly string[][]): Trajectory =>
  create(TrajectorySchema, {
    reward: 0.25,
    traces: traces.map((calls) => ({
      promptIds: new Uint8Array(400),
      responseIds: new Uint8Array(4 * calls.length),
      spans: calls.map((callId) => ({ callId, length: 1 })),
    })),
  });

const rewards = (given: Readonly<Record<string, number>>): TraceReward[] =>
  Object.entries(given).map(([callId, reward]) => create(TraceRewardSchema, { callId, reward }));

const TRACES = [['a', 'b', 'c'], ['d'], ['e', 'f']];
const encoded = (trajectory: Trajectory): Uint8Array => toBinary(TrajectorySchema, trajectory);
const sent = (trajectory: Trajectory) =>
  decodedBatch(create(TrajectoryBatchSchema, { trajectories: [trajectory] })).trajectories[0];
const ownRewards = ({ traces }: Trajectory) => traces.map(({ reward }) => reward);

describe('rewards of traces', () => {
  it('are those of the last call that has one; other traces have none of their own', () => {
    const given = rewards({ a: 1, b: 2, f: 0, none: 9 });
    expect(ownRewards(rewardTraces(built(...TRACES), given))).to.deep.equal([2, undefined, 0]);
  });

  it('are the same on traces that are not decoded, which change in nothing else', () => {
    for (const given of [{}, { c: -1.5 }, { a: 1, d: 3, f: 0 }]) {
      const decoded = rewardTraces(built(...TRACES), rewards(given));
      const stored = rewardTraces(storedTrajectory(encoded(built(...TRACES))), rewards(given));
      expect(rewardsIn(stored)).to.deep.equal(rewardsIn(decoded));
      expect(tokensOf(stored)).to.equal(tokensOf(decoded));
      expect(sent(stored)).to.deep.equal(decoded);
    }
  });

  it('are written behind what is stored, which is not copied', () => {
    const bytes = encoded(built(...TRACES));
    const batch = create(TrajectoryBatchSchema, { trajectories: [storedTrajectory(bytes)] });
    rewardTraces(batch.trajectories[0]!, rewards({ a: 1, d: 3, f: 0 }));
    const copied = field(1, tracesOf(batch)).filter((part) => part.buffer !== bytes.buffer);
    expect(copied.every((part) => part.byteLength < 40)).to.equal(true);
  });

  it("count for a trace, and where there is none the session's does", () => {
    expect(rewardsIn(rewardTraces(built(...TRACES), rewards({ c: 1, e: 2 })))).to.deep.equal([1, 0.25, 2]);
    const ungraded = create(TrajectorySchema, { traces: [{}] });
    expect(rewardsIn(ungraded)).to.deep.equal([]);
  });
});
