// The whole way with sandboxes that are containers: the calculator task in Docker, by a command and by the real pi CLI.
import { join } from 'node:path';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import {
  dockerIsThere,
  PROGRAMS_IMAGE,
  startDockerWithPrograms,
  type TestDocker,
} from '../support/docker.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { waitForEnd } from '../support/tasks.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/calculator');
/** `task.yaml` is for pi. */
const TASKS = ['task-shell.yaml', 'task.yaml'];

if (dockerIsThere) {
  describe('the calculator task in Docker', function () {
    this.timeout(180_000);
    let docker: TestDocker;
    let mesh: Mesh;
    before(async () => {
      docker = await startDockerWithPrograms({ remapped: true });
      const node = { docker: { socket: docker.socket, pull: 'never' } };
      mesh = await startMesh({ engineFlags: ['--script', join(EXAMPLE, 'script.yaml')], node });
    });
    after(async () => {
      await mesh?.[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
    });

    for (const file of TASKS) {
      it(`ends with graded trajectories: ${file}`, async () => {
        const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
        const spec = readTaskFile(join(EXAMPLE, file));
        Object.assign(spec.runtime ?? {}, { backend: 'docker', image: PROGRAMS_IMAGE });
        await rollout.submitTask({ spec });
        const sessions: Session[] = await waitForEnd(rollout, spec.taskId, 150_000);
        for (const { outcome, failure, stats } of sessions) {
          expect(outcome, failure?.message).to.equal(Outcome.COMPLETED);
          expect(stats?.trainedTokens).to.not.equal(0n);
        }
        expect(new Set(sessions.map(({ reward }) => reward))).to.deep.equal(new Set([0, 1]));
      });
    }

    it('leaves no container behind', async () => {
      await eventually('all are gone', async () => (await docker.docker('ps', '--all', '--quiet')) === '');
    });
  });
}
