// NATS is away for longer than every lease and every wait of the mesh.
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { startMesh } from '../support/mesh.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const MARK = sleepMark(3);
const AWAY_MS = 30_000;
const WAIT_MS = 90_000;

describe('NATS that goes away', function () {
  this.timeout(2 * WAIT_MS);

  it(`for ${AWAY_MS / 1000} s costs no session: what ran and what waited ends well, once`, async () => {
    await using mesh = await startMesh({ runSlots: 2 });
    const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    const trajectories = createServiceClient(TrajectoryService, mesh.reconstructorUrl);
    const { command } = curlTask('x', 1, 1).harness ?? {};
    const harness = { name: 'shell', modelName: 'm', command: { command: `${command?.command}\n${MARK}` } };
    await rollout.submitTask({ spec: curlTask('away', 6, 1, { harness }) });
    await eventually('some run', () => mesh.log('harness-executor').includes('harness started'));
    await mesh.nats.kill();
    await sleep(AWAY_MS);
    await mesh.nats.start();
    const sessions = await waitForEnd(rollout, 'away', WAIT_MS);
    for (const session of sessions) {
      expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session.stats?.calls).to.equal(1);
      const { trajectory } = await trajectories.getTrajectory({ sessionId: session.sessionId });
      expect(trajectory?.attempt).to.equal(session.attempt);
    }
    await leavesNothing(mesh.nodeFolder, [MARK]);
  });
});
