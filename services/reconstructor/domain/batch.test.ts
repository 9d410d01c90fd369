import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { type GroupReady, GroupReadySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { PolarError } from '../../common/errors.ts';
import { batchOf, lostGroup, trajectoryOf, withoutTrajectory } from './batch.ts';

const groupOf = (sizeBytes: number): GroupReady =>
  create(GroupReadySchema, {
    taskId: 't',
    groupId: 'g0',
    sessions: [
      {
        sessionId: 's',
        sampleIndex: 4,
        attempt: 2,
        outcome: Outcome.COMPLETED,
        reward: 0.5,
        trajectory: { sha256: 'a', sizeBytes: BigInt(sizeBytes) },
        evaluation: { passed: 1 },
      },
    ],
  });

describe('batch', () => {
  it('says of how many sessions of its task others come later', () => {
    const group = { ...groupOf(1), readyMs: 5n, carriedOverSessions: 3 };
    expect(batchOf(7, group, [])).to.include({ batchId: 7n, groupId: 'g0', carriedOverSessions: 3 });
  });

  it('puts what was built under how the session ended', () => {
    const group = groupOf(1);
    const built = create(TrajectorySchema, {
      builder: 'prefix_merging',
      traces: [{ promptIds: new Uint8Array(4) }],
      policyVersionMin: 7n,
      policyVersionMax: 8n,
    });
    const trajectory = trajectoryOf(group, group.sessions[0]!, built);
    expect(trajectory).to.include({ sessionId: 's', taskId: 't', groupId: 'g0', attempt: 2, sampleIndex: 4 });
    expect(trajectory).to.include({ reward: 0.5, builder: 'prefix_merging', policyVersionMax: 8n });
    expect(trajectory.traces.length).to.equal(1);
    expect(trajectory.evaluation).to.deep.equal({ passed: 1 });
  });

  it('has no reward where the trajectory is lost', () => {
    const group = groupOf(1);
    const trajectory = withoutTrajectory(group, group.sessions[0]!, new PolarError('BLOB_MISSING', 'gone'));
    expect(trajectory.reward).to.equal(undefined);
    expect(trajectory.outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
    expect(trajectory.failure).to.include({ reason: 'BLOB_MISSING', infrastructure: true });
  });

  it('names a group whose own message is lost by its subject', () => {
    const batch = lostGroup(5, 'polar.v1.trajectory.a=2eb.g0', new PolarError('BLOB_MISSING', 'gone'));
    expect(batch).to.include({ batchId: 5n, taskId: 'a.b', groupId: 'g0' });
    expect(batch.trajectories.length).to.equal(1);
  });
});
