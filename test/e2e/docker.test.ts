// The whole way with sandboxes that are containers: the calculator task in containers, by a command and by the real CLIs pi
// and codex. `npm run test:harnesses` has the others.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { isSolved, scriptIn, solve } from '../harnesses/solve.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { ENGINES, isLong, nodeWith } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { processesWith } from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/calculator');
/** `task.yaml` is for pi. */
const TASKS = ['task-shell.yaml', 'task.yaml'];

/** Docker where it maps users by itself, as it should be run; podman as it comes, in `npm run test:containers`. */
const KINDS = ENGINES.filter(({ backend, mapped }) => (backend === 'docker' ? mapped : isLong && !mapped));

for (const kind of KINDS) {
  const { backend } = kind;
  describe(`the calculator task in ${backend}`, function () {
    this.timeout(180_000);
    let folder: string;
    let docker: TestEngine;
    let mesh: Mesh;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'polar-test-e2e-docker-'));
      docker = await kind.start();
      const node = nodeWith(kind, docker);
      mesh = await startMesh({ engineFlags: ['--script', scriptIn(folder)], node });
    });
    after(async () => {
      await mesh?.[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    });

    for (const file of TASKS) {
      it(`ends with graded trajectories: ${file}`, async () => {
        const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
        const spec = readTaskFile(join(EXAMPLE, file));
        Object.assign(spec.runtime ?? {}, { backend, image: PROGRAMS_IMAGE });
        await rollout.submitTask({ spec });
        const sessions: Session[] = await waitForEnd(rollout, spec.taskId, 150_000);
        for (const { outcome, failure, stats } of sessions) {
          expect(outcome, failure?.message).to.equal(Outcome.COMPLETED);
          expect(stats?.trainedTokens).to.not.equal(0n);
        }
        expect(new Set(sessions.map(({ reward }) => reward))).to.deep.equal(new Set([0, 1]));
      });
    }

    it('has a native harness solve it, that ends with 0', async () => {
      const place = { name: backend, runtime: { backend, image: PROGRAMS_IMAGE }, mesh: {} };
      const ran = await solve(mesh, 'codex', place);
      expect(isSolved(ran), ran.complaint).to.equal(true);
      expect(ran.transcripts).to.equal(1);
    });

    it("tells a harness's own exit code", async () => {
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const spec = curlTask('exits', 1, 1, {
        runtime: { backend, image: PROGRAMS_IMAGE },
        harness: { name: 'shell', command: { command: 'echo last words; exit 7' } },
      });
      await rollout.submitTask({ spec });
      const [session] = await waitForEnd(rollout, spec.taskId, 60_000);
      expect(session?.outcome).to.equal(Outcome.HARNESS_ERROR);
      const logs = createServiceClient(HarnessService, mesh.harnessUrl);
      const { exitCode, stdout } = await logs.getSessionLogs({ sessionId: session?.sessionId ?? '' });
      expect(exitCode).to.equal(7);
      expect(Buffer.from(stdout).toString()).to.equal('last words\n');
    });

    it('refuses at submit an image that no node has, and names it', async () => {
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const runtime = { backend, image: 'nowhere:1' };
      const error = await rollout
        .submitTask({ spec: curlTask('no-image', 1, 1, { runtime }) })
        .catch((refused) => refused);
      expect(error.reason).to.equal('IMAGE_NOT_FOUND');
      expect(error.message).to.contain(`nowhere:1`).and.to.contain(`node-1 has ${PROGRAMS_IMAGE}`);
    });

    it('tries a session again whose engine is killed in mid-run, when that is back', async () => {
      const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      const [short, long] = [sleepMark(3), sleepMark()];
      const spec = curlTask('engine-killed', 1, 1, {
        runtime: { backend, image: PROGRAMS_IMAGE },
        harness: { name: 'shell', command: { command: `setsid ${long} & ${short}` } },
      });
      await rollout.submitTask({ spec });
      await eventually('it runs', () => processesWith(short).length > 0);
      await docker.kill();
      await eventually('its processes are gone', () => [short, long].flatMap(processesWith).length === 0);
      await docker.start();
      const [session] = await waitForEnd(rollout, spec.taskId, 90_000);
      expect(session?.outcome, session?.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session?.attempts[0]?.failure?.reason).to.equal('RUNTIME_LOST');
      expect([short, long].flatMap(processesWith)).to.deep.equal([]);
    });

    it('leaves no container behind', async () => {
      await eventually('all are gone', async () => (await docker.docker('ps', '--all', '--quiet')) === '');
    });
  });
}
