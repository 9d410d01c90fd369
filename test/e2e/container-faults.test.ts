// What a task's image or a node's container engine does wrong, through the whole mesh.
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { processesWith } from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

/** In command lines of what these sandboxes start. */
const MARK = sleepMark();
const MAIN = sleepMark(3);
const WAIT_MS = 90_000;
/** What would end a container that ran it. */
const ENTERED = ['ENTRYPOINT ["/bin/false"]', 'CMD ["x"]'];

for (const kind of LONG_ENGINES) {
  const { backend } = kind;
  describe(`images and engines that are wrong: ${backend}`, function () {
    this.timeout(2 * WAIT_MS);
    const opened = new AsyncDisposableStack();
    let engine: TestEngine;
    let mesh: Mesh;
    let rollout: Client<typeof RolloutService>;
    before(async () => {
      engine = opened.use(await kind.start());
      await engine.change(PROGRAMS_IMAGE, 'entered:1', ENTERED);
      await engine.change(PROGRAMS_IMAGE, 'gone:1', ['CMD ["x"]']);
      mesh = opened.use(await startMesh({ node: nodeWith(kind, engine) }));
      rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    });
    after(() => opened.disposeAsync());

    async function submit(taskId: string, image: string, more: object = {}): Promise<void> {
      await rollout.submitTask({ spec: curlTask(taskId, 1, 1, { runtime: { backend, image }, ...more }) });
    }

    async function ended(taskId: string): Promise<Session> {
      const [session] = await waitForEnd(rollout, taskId, WAIT_MS);
      return session ?? expect.fail('it has no session');
    }

    async function run(taskId: string, image: string): Promise<Session> {
      await submit(taskId, image);
      return await ended(taskId);
    }

    it('an entry point is not run', async () => {
      const session = await run('entered', 'entered:1');
      expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session.stats?.calls).to.equal(1);
    });

    it('an image that is deleted meanwhile is told by its name', async () => {
      await engine.docker('rmi', 'gone:1');
      // The node may have told already that it is gone: then submit refuses it.
      const told = await run('gone', 'gone:1').then(
        ({ failure }) => failure,
        (refused) => asPolarError(refused),
      );
      expect(told?.reason).to.equal('IMAGE_NOT_FOUND');
      expect(told?.message).to.contain('gone:1');
    });

    it('an engine that stops in mid-run and stays away ends the session, with the cause of each attempt', async () => {
      const harness = { name: 'shell', command: { command: `setsid ${MARK} & ${MAIN}` } };
      await submit('stopped', PROGRAMS_IMAGE, { harness, budgets: { queue: { seconds: 5n } } });
      await eventually('it runs', () => processesWith(MAIN).length > 0);
      await engine.kill();
      try {
        const session = await ended('stopped');
        expect(session.outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
        expect(session.failure?.reason).to.equal('QUEUE_TIMEOUT');
        expect(session.attempts[0]?.failure?.reason).to.equal('RUNTIME_LOST');
        expect([MARK, MAIN].flatMap(processesWith)).to.deep.equal([]);
      } finally {
        await engine.start();
      }
      const offers = async (): Promise<boolean> =>
        (await rollout.listNodes({})).nodes.some(({ backends }) => backends.includes(backend));
      await eventually('the node offers it again', offers);
      const after = await run('back', PROGRAMS_IMAGE);
      expect(after.outcome, after.failure?.message).to.equal(Outcome.COMPLETED);
      await leavesNothing(mesh.nodeFolder, [MARK, MAIN]);
      await eventually('no container', async () => (await engine.docker('ps', '-aq')) === '');
    });
  });
}
