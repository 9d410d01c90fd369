// Sessions that run elsewhere, graded by an evaluator of the operator's own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type JsonObject } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient, createServiceClient } from '../../services/common/client.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { sessionsOf } from '../support/scheduler.ts';

const EVALUATOR = `export const evaluator = {
  async evaluate({ instruction, outcome, calls, options, sandbox, fresh }) {
    if (options.looks) await sandbox.readFile('/x');
    const asked = await Promise.allSettled([sandbox.exec('true'), fresh.exec('true')]);
    const told = { instruction, outcome, asked: asked.map(({ reason }) => [reason.reason, reason.message]) };
    return { reward: calls.length / 4, told };
  },
};`;
const NONE = 'sessions of harness external have no sandbox';

describe('sessions that run elsewhere, and an evaluator of one’s own', function () {
  this.timeout(60_000);
  let mesh: Mesh;
  let plugins: string;
  let rollout: Client<typeof RolloutService>;
  before(async () => {
    plugins = mkdtempSync(join(tmpdir(), 'polar-test-external-'));
    writeFileSync(join(plugins, 'grades.mjs'), EVALUATOR);
    mesh = await startMesh({ defaultBackend: 'process', node: { plugins_dir: plugins } });
    rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    await eventually('the node is heard', async () => (await rollout.listNodes({})).nodes.length > 0);
  });
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
    rmSync(plugins, { recursive: true });
  });

  /** A session of one call, when it has ended. */
  const graded = async (taskId: string, config: JsonObject): Promise<Session> => {
    const spec = create(TaskSpecSchema, {
      ...{ taskId, instruction: 'Count.', harness: { name: 'external', modelName: 'm' } },
      ...{ builder: { strategy: 'prefix_merging' }, evaluator: { strategy: 'grades.mjs', config } },
    });
    await rollout.submitTask({ spec });
    const { openaiUrl, apiKey, session } = await rollout.openSession({ taskId });
    const { ok } = await fetch(`${openaiUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a' }] }),
    });
    expect(ok).to.equal(true);
    const { sessionId = '', attempt = 0 } = session ?? {};
    await rollout.closeSession({ sessionId, attempt });
    const one = async () => (await sessionsOf(rollout, taskId))[0] as Session;
    await eventually('it has ended', async () => (await one()).state === SessionState.ENDED);
    return await one();
  };

  it('are graded by their calls: what it asks of a sandbox is refused', async () => {
    const { outcome, reward, failure, sessionId } = await graded('graded', {});
    expect([outcome, reward], failure?.message).to.deep.equal([Outcome.COMPLETED, 0.25]);
    const trajectories = createPlainClient(TrajectoryService, mesh.reconstructorUrl);
    const { trajectory } = await trajectories.getTrajectory({ sessionId });
    const refused = ['INVALID_REQUEST', NONE];
    expect(trajectory?.evaluation).to.deep.equal({
      ...{ instruction: 'Count.', outcome: 'completed', asked: [refused, refused] },
    });
  });

  it('are at an end where it makes nothing of that', async () => {
    const { outcome, attempt, reward, failure } = await graded('looks', { options: { looks: true } });
    expect([outcome, attempt, reward]).to.deep.equal([Outcome.TASK_ERROR, 1, undefined]);
    expect(failure?.message).to.contain(`grades.mjs: it threw: ${NONE}`);
  });
});
