// Sessions whose harness runs elsewhere, through the whole mesh: opened, called, closed, and in the trainer's stream as any
// other; while every service that has a part in it is killed.
import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';

import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Outcome, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { TrajectoryBatch } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import {
  type OpenSessionResponse,
  RolloutService,
} from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient, createServiceClient } from '../../services/common/client.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';

function externalTask(taskId: string, more: MessageInitShape<typeof TaskSpecSchema> = {}): TaskSpec {
  const base: MessageInitShape<typeof TaskSpecSchema> = {
    taskId,
    instruction: 'Count.',
    harness: { name: 'external', modelName: 'm' },
    builder: { strategy: 'prefix_merging' },
  };
  return create(TaskSpecSchema, Object.assign(base, more));
}

/** One model call at the address that was handed out; its status. */
async function called({ openaiUrl, apiKey }: OpenSessionResponse, ...messages: string[]): Promise<number> {
  const response = await fetch(`${openaiUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: messages.map((content) => ({ role: 'user', content })) }),
  });
  await response.text();
  return response.status;
}

const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error) => asPolarError(error).reason,
  );

describe('sessions that run elsewhere', function () {
  this.timeout(120_000);
  let mesh: Mesh;
  let rollout: Client<typeof RolloutService>;
  before(async () => {
    mesh = await startMesh({ defaultBackend: 'process' });
    rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  const batchOf = async (taskId: string): Promise<TrajectoryBatch> => {
    const trajectories = createPlainClient(TrajectoryService, mesh.reconstructorUrl);
    const stream = trajectories.streamTrajectories({ consumer: `c-${taskId}`, taskId });
    for await (const { batch } of stream) if (batch !== undefined) return batch;
    throw new Error('the stream ended');
  };
  const closing = ({ session }: OpenSessionResponse) => ({
    sessionId: session?.sessionId ?? '',
    attempt: session?.attempt ?? 0,
  });

  it('are a group in the stream, each with the reward that its caller gave', async () => {
    await rollout.submitTask({ spec: externalTask('group', { numSamples: 2 }) });
    const requestId = randomUUID();
    const first = await rollout.openSession({ taskId: 'group', requestId });
    expect(first.session?.state).to.equal(SessionState.RUNNING);
    const replay = await rollout.openSession({ taskId: 'group', requestId });
    expect(replay).to.deep.equal(first);
    const second = await rollout.openSession({ taskId: 'group' });
    expect(second.session?.sessionId).not.to.equal(first.session?.sessionId);
    expect(await reasonOf(rollout.openSession({ taskId: 'group' }))).to.equal('NO_SESSION_WAITS');
    expect([
      await called(first, 'a'),
      await called(first, 'a', 'b'),
      await called(second, 'a'),
    ]).to.deep.equal([200, 200, 200]);
    await rollout.closeSession({ ...closing(first), reward: 1 });
    await rollout.closeSession({ ...closing(second), outcome: Outcome.HARNESS_ERROR, reward: -0.5 });
    const batch = await batchOf('group');
    expect(batch.trajectories.map(({ outcome, reward }) => [outcome, reward])).to.deep.equal([
      [Outcome.COMPLETED, 1],
      [Outcome.HARNESS_ERROR, -0.5],
    ]);
    expect(batch.trajectories.map(({ stats }) => stats?.calls)).to.deep.equal([2, 1]);
    expect(await called(first, 'late')).to.equal(401);
  });
});
