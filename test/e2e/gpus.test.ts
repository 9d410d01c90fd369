// Sessions that ask for a GPU, through the whole mesh, on a node that has one: each has it for its run and its grading, which takes
// place in another sandbox, one after the other; a kill of the node's manager loses none.
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { RolloutService, WaitReason } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { makeDevices, type TestDevices } from '../support/device-nodes.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { isLong } from '../support/long.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { bwrapIsThere, isHostRoot } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const REPOSITORY = 'git init -q . && git -c user.name=n -c user.email=e@e commit -q --allow-empty -m base';
const SAMPLES = 3;

// What it joins is tried alone in test/integration: here they are together, in `npm run test:containers`.
if (isLong && bwrapIsThere && isHostRoot) {
  describe('sessions with GPUs', function () {
    this.timeout(120_000);
    let mesh: Mesh;
    let devices: TestDevices;
    let rollout: Client<typeof RolloutService>;
    before(async () => {
      devices = makeDevices();
      const gpus = { devices: devices.devices.slice(1), common: [] };
      mesh = await startMesh({ runSlots: 2, node: { gpus } });
      rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    });
    after(async () => {
      await mesh?.[Symbol.asyncDispose]();
      devices[Symbol.dispose]();
    });

    it('run and are graded with the one that there is, also where its manager is killed', async () => {
      const command = 'ls /dev/gpu1 > made; sleep 1';
      await rollout.submitTask({
        spec: curlTask('gpu', SAMPLES, 0, {
          maxAttempts: 10,
          harness: { name: 'shell', modelName: 'm', command: { command } },
          runtime: { gpus: 1, prepare: [{ step: { case: 'exec', value: { command: REPOSITORY } } }] },
          evaluator: {
            strategy: 'test_on_output',
            config: {
              repo_dir: '/polar/session/workspace',
              test_command:
                'grep -q /dev/gpu1 made && head -c 1 /dev/gpu1 | wc -c | grep -q 1 && echo PASSED one',
              expected_output_json: { one: 'PASSED' },
            },
          },
        }),
      });
      await eventually('one runs, and another waits for its GPU', async () => {
        const { sessions, waiting } = await rollout.listSessions({ taskId: 'gpu', waiting: true });
        const reasons = Object.values(waiting).map(({ reason }) => reason);
        const running = sessions.filter(({ state }) => state === SessionState.RUNNING);
        return running.length === 1 && reasons.includes(WaitReason.GPU);
      });
      await mesh.kill('runtime-prewarm');
      await mesh.start('runtime-prewarm');
      const sessions = await waitForEnd(rollout, 'gpu', 90_000);
      expect(sessions.map(({ reward }) => reward)).to.deep.equal(Array(SAMPLES).fill(1));
      await leavesNothing(mesh.nodeFolder, []);
    });
  });
}
