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
import { processesWith } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

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

    it('ends a session at once whose image is missing, and names it', async () => {
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const runtime = { backend: 'docker', image: 'nowhere:1' };
      await rollout.submitTask({ spec: curlTask('no-image', 1, 1, { runtime }) });
      const [session] = await waitForEnd(rollout, 'no-image', 60_000);
      expect(session?.outcome).to.equal(Outcome.TASK_ERROR);
      expect(session?.failure?.reason).to.equal('IMAGE_NOT_FOUND');
      expect(session?.failure?.message).to.contain('"nowhere:1"');
    });

    it('tries a session again whose engine is killed in mid-run, when that is back', async () => {
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const spec = curlTask('engine-killed', 1, 1, {
        runtime: { backend: 'docker', image: PROGRAMS_IMAGE },
        harness: { name: 'shell', command: { command: 'setsid sleep 77094 & sleep 3.77094' } },
      });
      await rollout.submitTask({ spec });
      await eventually('it runs', () => processesWith('sleep 3.77094').length > 0);
      await docker.kill();
      await eventually('its processes are gone', () => processesWith('77094').length === 0);
      await docker.start();
      const [session] = await waitForEnd(rollout, spec.taskId, 90_000);
      expect(session?.outcome, session?.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session?.attempts[0]?.failure?.reason).to.equal('RUNTIME_LOST');
      expect(processesWith('77094')).to.deep.equal([]);
    });

    it('leaves no container behind', async () => {
      await eventually('all are gone', async () => (await docker.docker('ps', '--all', '--quiet')) === '');
    });
  });
}
