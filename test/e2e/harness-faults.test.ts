// Harnesses that do what they should not, in real sandboxes of each kind and through the whole mesh: each session ends with
// a typed outcome within its budget, what the harness wrote can be read, and nothing of it is left on the machine.
import { existsSync } from 'node:fs';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { type EngineKind, LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { eventually } from '../support/eventually.ts';
import { DISK_FAULT, HARNESS_FAULTS, MARK, PREPARATION_FAULTS, shell } from '../support/harness-faults.ts';
import { leavesNothing, leftoversOfNode } from '../support/leftovers.ts';
import { isLong } from '../support/long.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { bwrapIsThere, isHostRoot } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const WAIT_MS = 90_000;
const disksAreThere = bwrapIsThere && isHostRoot && existsSync('/dev/loop-control');
/** Undefined: where sandboxes are made when a task says nothing. */
const BACKENDS: readonly (readonly [backend?: string, kind?: EngineKind])[] = [
  [],
  ...(isLong && withoutApptainer === undefined ? [['apptainer'] as const] : []),
  ...(isLong ? LONG_ENGINES.map((kind) => [kind.backend, kind] as const) : []),
];

for (const [backend, kind] of BACKENDS) {
  describe(`harnesses that misbehave${backend === undefined ? '' : ` in ${backend}`}`, function () {
    this.timeout(2 * WAIT_MS);
    let engine: TestEngine | undefined;
    let mesh: Mesh;
    let rollout: Client<typeof RolloutService>;
    let harnesses: Client<typeof HarnessService>;
    const cases = [...HARNESS_FAULTS, ...(disksAreThere && backend === undefined ? [DISK_FAULT] : [])];
    const place = backend === undefined ? {} : { backend, ...(kind && { image: PROGRAMS_IMAGE }) };
    const idOf = (name: string): string => name.replaceAll(/\W+/g, '-');

    before(async () => {
      engine = await kind?.start();
      const path = backend === 'apptainer' ? { path: pathWithApptainer } : {};
      mesh = await startMesh(kind && engine ? { node: nodeWith(kind, engine) } : path);
      rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
      harnesses = createServiceClient(HarnessService, mesh.harnessUrl);
      // All at once: what one does must not be felt by the others.
      for (const { name, more, ...one } of [...cases, ...PREPARATION_FAULTS]) {
        const harness = shell('command' in one ? one.command : 'true');
        const runtime = { ...more?.runtime, ...place };
        await rollout.submitTask({ spec: curlTask(idOf(name), 1, 1, { ...more, harness, runtime }) });
      }
    });
    after(async () => {
      await mesh?.[Symbol.asyncDispose]();
      await engine?.[Symbol.asyncDispose]();
    });

    const endOf = async (name: string): Promise<Session> => {
      const [session] = await waitForEnd(rollout, idOf(name), WAIT_MS);
      return session ?? expect.fail('it has no session');
    };

    for (const { name, outcome, reason, check } of cases) {
      it(`one that ${name}: ${Outcome[outcome]}`, async () => {
        const session = await endOf(name);
        expect(session.outcome, session.failure?.message).to.equal(outcome);
        expect(session.failure?.reason).to.equal(reason);
        expect(session.attempt).to.equal(1);
        const { sessionId } = session;
        check?.(session, await harnesses.getSessionLogs({ sessionId }));
      });
    }

    for (const { name, outcome, reason, attempts } of PREPARATION_FAULTS) {
      it(`a preparation that ${name}: ${reason}`, async () => {
        const session = await endOf(name);
        expect(session.outcome, session.failure?.message).to.equal(outcome);
        expect(session.failure?.reason).to.equal(reason);
        expect(session.attempts.length).to.equal(attempts);
        expect(session.reward).to.equal(undefined);
      });
    }

    it('are followed by one that behaves', async () => {
      const more = place && { runtime: place };
      await rollout.submitTask({ spec: curlTask('after', 1, 3, more) });
      const session = await endOf('after');
      expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
      expect(session.stats?.calls).to.equal(3);
    });

    it('leave no process, folder, container, group, mount or device behind, and the mesh none when it ends', async () => {
      const { nodeFolder } = mesh;
      await leavesNothing(nodeFolder, [MARK]);
      await eventually('no container', async () => ((await engine?.containers()) ?? []).length === 0);
      await mesh[Symbol.asyncDispose]();
      await eventually('the node is gone', () => leftoversOfNode(nodeFolder, [MARK]).length === 0);
    });
  });
}
