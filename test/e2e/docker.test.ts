// The whole way with sandboxes that are containers: the calculator task in containers, by a command and by the real CLIs pi
// and codex (`npm run test:harnesses` has the others), and what a task's image or a node's container engine does wrong.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { isSolved, scriptIn, solve } from '../harnesses/solve.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { ENGINES, nodeWith } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { isLong } from '../support/long.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { processesWith } from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/calculator');
const HARBOR = join(import.meta.dirname, '../../examples/harbor/task.yaml');
/** `task.yaml` is for pi. */
const TASKS = ['task-shell.yaml', 'task.yaml'];
/** What would end a container that ran it. */
const ENTERED = ['ENTRYPOINT ["/bin/false"]', 'CMD ["x"]'];

/** Docker where it maps users by itself, as it should be run; podman as it comes, in `npm run test:containers`. */
const KINDS = ENGINES.filter(({ backend, mapped }) => (backend === 'docker' ? mapped : isLong && !mapped));

for (const kind of KINDS) {
  const { backend } = kind;
  describe(`the whole way in ${backend}`, function () {
    this.timeout(180_000);
    let folder: string;
    let docker: TestEngine;
    let mesh: Mesh;
    let rollout: Client<typeof RolloutService>;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'polar-test-e2e-docker-'));
      docker = await kind.start();
      await docker.change(PROGRAMS_IMAGE, 'entered:1', ENTERED);
      await docker.change(PROGRAMS_IMAGE, 'gone:1', ['CMD ["x"]']);
      const node = nodeWith(kind, docker);
      mesh = await startMesh({ engineFlags: ['--script', scriptIn(folder)], node });
      rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    });
    after(async () => {
      await mesh?.[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    });

    async function submit(taskId: string, image: string, more: object = {}): Promise<void> {
      await rollout.submitTask({ spec: curlTask(taskId, 1, 1, { runtime: { backend, image }, ...more }) });
    }

    async function ended(taskId: string): Promise<Session> {
      const [session] = await waitForEnd(rollout, taskId, 90_000);
      return session ?? expect.fail('it has no session');
    }

    async function run(taskId: string, image: string, more: object = {}): Promise<Session> {
      await submit(taskId, image, more);
      return await ended(taskId);
    }

    const offered = (): Promise<void> =>
      eventually('the node offers it', async () =>
        (await rollout.listNodes({})).nodes.some(({ backends }) => backends.includes(backend)),
      );

    for (const file of TASKS) {
      it(`ends with graded trajectories: ${file}`, async () => {
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

    it("has a Harbor task's verifier judge what a command leaves", async () => {
      const { evaluator } = readTaskFile(HARBOR);
      const command = 'for word in $(seq 41); do echo $word; done > greeting.txt';
      const harness = { name: 'shell', command: { command } };
      const { reward, failure } = await run('harbor', PROGRAMS_IMAGE, { evaluator, harness });
      expect(reward, failure?.message).to.equal(0.5);
    });

    it("tells a harness's own exit code", async () => {
      const harness = { name: 'shell', command: { command: 'echo last words; exit 7' } };
      const { outcome, sessionId } = await run('exits', PROGRAMS_IMAGE, { harness });
      expect(outcome).to.equal(Outcome.HARNESS_ERROR);
      const logs = createServiceClient(HarnessService, mesh.harnessUrl);
      const { exitCode, stdout } = await logs.getSessionLogs({ sessionId });
      expect(exitCode).to.equal(7);
      expect(Buffer.from(stdout).toString()).to.equal('last words\n');
    });

    it('refuses at submit an image that no node has, and names it', async () => {
      const error = await submit('no-image', 'nowhere:1').catch((refused) => refused);
      expect(error.reason).to.equal('IMAGE_NOT_FOUND');
      expect(error.message)
        .to.contain('nowhere:1')
        .and.to.match(/node-1 has /)
        .and.to.contain(PROGRAMS_IMAGE);
    });

    it('an entry point is not run', async () => {
      const session = await run('entered', 'entered:1');
      expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session.stats?.calls).to.equal(1);
    });

    it('an image that is deleted meanwhile is told by its name', async () => {
      await docker.docker('rmi', 'gone:1');
      // The node may have told already that it is gone: then submit refuses it.
      const told = await run('gone', 'gone:1').then(
        ({ failure }) => failure,
        (refused) => asPolarError(refused),
      );
      expect(told?.reason).to.equal('IMAGE_NOT_FOUND');
      expect(told?.message).to.contain('gone:1');
    });

    it('tries a session again whose engine is killed in mid-run, when that is back', async () => {
      const [short, long] = [sleepMark(3), sleepMark()];
      const harness = { name: 'shell', command: { command: `setsid ${long} & ${short}` } };
      await submit('engine-killed', PROGRAMS_IMAGE, { harness });
      await eventually('it runs', () => processesWith(short).length > 0);
      await docker.kill();
      await eventually('its processes are gone', () => [short, long].flatMap(processesWith).length === 0);
      await docker.start();
      const session = await ended('engine-killed');
      expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session.attempts[0]?.failure?.reason).to.equal('RUNTIME_LOST');
      expect([short, long].flatMap(processesWith)).to.deep.equal([]);
    });

    it('an engine that stops in mid-run and stays away ends the session, with the cause of each attempt', async () => {
      const [short, long] = [sleepMark(3), sleepMark()];
      const harness = { name: 'shell', command: { command: `setsid ${long} & ${short}` } };
      await offered();
      await submit('stopped', PROGRAMS_IMAGE, { harness, budgets: { queue: { seconds: 5n } } });
      await eventually('it runs', () => processesWith(short).length > 0);
      await docker.kill();
      try {
        const session = await ended('stopped');
        expect(session.outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
        expect(session.failure?.reason).to.equal('QUEUE_TIMEOUT');
        expect(session.attempts[0]?.failure?.reason).to.equal('RUNTIME_LOST');
        expect([short, long].flatMap(processesWith)).to.deep.equal([]);
      } finally {
        await docker.start();
      }
      await offered();
      const after = await run('back', PROGRAMS_IMAGE);
      expect(after.outcome, after.failure?.message).to.equal(Outcome.COMPLETED);
      await leavesNothing(mesh.nodeFolder, [short, long]);
    });

    it('leaves no container behind', async () => {
      await eventually('all are gone', async () => (await docker.containers()).length === 0);
    });
  });
}
