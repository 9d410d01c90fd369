// kill -9 of every service of one mesh in turn, and of nats-server, each in the middle of a run: every session ends once, and
// nothing that was acknowledged is missing.
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { SERVICES } from '../../clients/cli/services.ts';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { TrajectoryBatch } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { isLong } from '../support/long.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

/** The others fall in the storm of each CI, and here in `npm run test:chaos`. */
const VICTIMS = isLong
  ? ([...SERVICES, 'nats-server'] as const)
  : (['scheduler', 'llm-proxy', 'nats-server'] as const);
const SESSIONS = 20;
const END_MS = 150_000;

/** The batches of one task that a consumer is sent; acknowledges each, and starts again when the stream breaks. */
async function readBatches(
  mesh: Mesh,
  consumer: string,
  taskId: string,
  count: number,
): Promise<TrajectoryBatch[]> {
  const client = createClient(TrajectoryService, createGrpcTransport({ baseUrl: mesh.reconstructorUrl }));
  const batches: TrajectoryBatch[] = [];
  const until = performance.now() + 60_000;
  while (batches.length < count && performance.now() < until) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), 20_000);
    try {
      for await (const { batch } of client.streamTrajectories(
        { consumer, taskId },
        { signal: abort.signal },
      )) {
        if (batch === undefined) continue;
        await client.ackTrajectories({ consumer, batchIds: [batch.batchId] });
        batches.push(batch);
        if (batches.length === count) break;
      }
    } catch {
      await sleep(200);
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
  }
  return batches;
}

describe('kill -9 in the middle of a run', function () {
  this.timeout(400_000);
  let mesh: Mesh;
  before(async () => {
    mesh = await startMesh({
      runSlots: 6,
      prepareSlots: 6,
      engineFlags: ['--token-ms', '30'],
    });
  });
  after(() => mesh[Symbol.asyncDispose]());

  for (const victim of VICTIMS) {
    it(`${victim}: every session ends once, with a trajectory or a typed infrastructure failure and a new attempt`, async () => {
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const taskId = `kill-${victim}`;
      const submitted = await rollout.submitTask({ spec: curlTask(taskId, SESSIONS) });
      expect(submitted.sessionIds).to.have.length(SESSIONS);
      await sleep(1_200);
      if (victim === 'nats-server') {
        await mesh.nats.kill();
        await sleep(500);
        await mesh.nats.start();
      } else {
        await mesh.kill(victim);
        await sleep(500);
        await mesh.start(victim);
      }
      const sessions = await waitForEnd(rollout, taskId, END_MS);
      expect(sessions.map((session) => session.sessionId).sort()).to.deep.equal(
        [...submitted.sessionIds].sort(),
      );
      for (const session of sessions) {
        expect(session.outcome, `${session.sessionId}: ${session.failure?.message}`).to.equal(
          Outcome.COMPLETED,
        );
        expect(session.reward).to.equal(1);
        const { calls = 0 } = session.stats ?? {};
        // The proxy may die between a call's record and its reply: the harness then makes the call again.
        if (victim === 'llm-proxy') expect(calls).to.be.at.least(3);
        else expect(calls).to.equal(3);
        expect(session.attempts).to.have.length(session.attempt);
        for (const earlier of session.attempts.slice(0, -1))
          expect(earlier.failure?.infrastructure).to.equal(true);
      }
      const [batch, ...others] = await readBatches(mesh, `chaos-${victim}`, taskId, 1);
      expect(others).to.have.length(0);
      expect(batch?.trajectories.map((trajectory) => trajectory.sessionId)).to.deep.equal(
        submitted.sessionIds,
      );
      for (const trajectory of batch?.trajectories ?? []) {
        expect(trajectory.traces.length).to.be.greaterThan(0);
        expect(trajectory.reward).to.equal(1);
      }
    });
  }
});
