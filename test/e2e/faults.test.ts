// What goes wrong in a run, through the whole mesh: each has one typed failure, and infrastructure is never a reward.
import process from 'node:process';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { Boundary } from '../../gen/ts/polar/common/v1/failure_pb.js';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { eventually } from '../support/eventually.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const command = (text: string) => ({ name: 'shell', modelName: 'm', command: { command: text } });

describe('faults in a run', function () {
  this.timeout(120_000);
  let mesh: Mesh;
  let rollout: Client<typeof RolloutService>;
  before(async () => {
    mesh = await startMesh();
    rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  async function run(spec: TaskSpec): Promise<Session> {
    await rollout.submitTask({ spec });
    const [session] = await waitForEnd(rollout, spec.taskId, 90_000);
    return session as Session;
  }

  it('a harness that fails is graded: HARNESS_ERROR with its exit code', async () => {
    const session = await run(curlTask('exits', 1, 1, { harness: command('exit 7') }));
    expect(session.outcome).to.equal(Outcome.HARNESS_ERROR);
    expect(session.failure?.reason).to.equal('HARNESS_EXIT');
    expect(session.failure?.boundary).to.equal(Boundary.HARNESS);
    expect(session.failure?.message).to.contain('7');
    expect(session.reward).to.equal(0);
  });

  it('a harness whose time is over is built and graded: TIMEOUT, with what it did until then', async () => {
    const call = `curl -sS -o r "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -d '{"messages":[{"role":"user","content":"hi"}]}'`;
    const session = await run(
      curlTask('slow', 1, 1, {
        harness: command(`${call}; sleep 600`),
        budgets: { run: durationFromMs(4_000) },
      }),
    );
    expect(session.outcome).to.equal(Outcome.TIMEOUT);
    expect(session.failure?.reason).to.equal('HARNESS_TIMEOUT');
    expect(session.stats?.calls).to.equal(1);
    expect(session.stats?.traces).to.equal(1);
    expect(session.reward).to.equal(0);
  });

  it('a preparation that fails is the fault of the task: TASK_ERROR, no reward, no second attempt', async () => {
    const prepare = [
      { step: { case: 'exec' as const, value: { command: 'echo no such tool >&2; exit 3' } } },
    ];
    const session = await run(curlTask('unprepared', 1, 1, { runtime: { prepare } }));
    expect(session.outcome).to.equal(Outcome.TASK_ERROR);
    expect(session.failure?.reason).to.equal('PREPARE_FAILED');
    expect(session.failure?.message).to.contain('no such tool');
    expect(session.reward).to.equal(undefined);
    expect(session.attempt).to.equal(1);
  });

  it('a sandbox reaches the proxy and nothing else', async () => {
    const other = mesh.schedulerUrl;
    const script = `curl -sS -m 3 ${other}/healthz && exit 1; curl -sS --fail "\${OPENAI_BASE_URL%/v1}/v1/models" -H "authorization: Bearer $OPENAI_API_KEY"`;
    const session = await run(curlTask('isolated', 1, 1, { harness: command(script) }));
    expect(session.outcome, session.failure?.message).to.equal(Outcome.COMPLETED);
  });

  it('cancel ends queued and running sessions at once, without reward', async () => {
    await rollout.submitTask({ spec: curlTask('cancelled', 8, 1, { harness: command('sleep 600') }) });
    await eventually('some run', async () => {
      const { task } = await rollout.getTask({ taskId: 'cancelled' });
      return (task?.sessionsByState['running'] ?? 0) > 0;
    });
    await rollout.cancelTask({ taskId: 'cancelled' });
    const sessions = await waitForEnd(rollout, 'cancelled', 60_000);
    expect(sessions.map((session) => session.outcome)).to.deep.equal(Array(8).fill(Outcome.CANCELLED));
    expect(sessions.every((session) => session.reward === undefined)).to.equal(true);
  });

  it('refuses at submit what cannot be done, with every fault by its field', async () => {
    const bad = curlTask('bad', 1, 1, {
      builder: { strategy: 'guess' },
      evaluator: { strategy: 'oracle' },
      runtime: { backend: 'spaceship' },
      harness: { name: 'robot' },
    });
    const error = await rollout.submitTask({ spec: bad }).catch((reason) => reason);
    expect(error.reason).to.equal('INVALID_TASK');
    expect(error.fields.map(({ field }: { field: string }) => field)).to.include.members([
      'builder.strategy',
      'evaluator.strategy',
      'runtime.backend',
      'harness.name',
    ]);
    const noImage = await rollout
      .submitTask({
        spec: curlTask('no-image', 1, 1, { runtime: { backend: 'bubblewrap', image: 'nowhere' } }),
      })
      .catch((reason) => reason);
    expect(noImage.message).to.contain('nowhere');
  });

  it('an engine that goes away: ENGINE_UNAVAILABLE of the provider, an attempt each, and never a reward', async () => {
    process.kill(mesh.pids.get('engine') ?? 0, 'SIGKILL');
    await expectNoReward(rollout, 'ENGINE_UNAVAILABLE');
  });
});

describe('an engine that returns no token ids', () => {
  it('is ENGINE_NO_TOKEN_IDS of the provider, an attempt each, and never a reward', async function () {
    this.timeout(120_000);
    await using mesh = await startMesh({ engineFlags: ['--token-ids', 'false'] });
    const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    await expectNoReward(rollout, 'ENGINE_NO_TOKEN_IDS');
  });
});

/** A session whose model calls cannot be answered ends after its attempts, each with the reason. */
async function expectNoReward(rollout: Client<typeof RolloutService>, reason: string): Promise<void> {
  const spec = curlTask('engine', 1, 1, { maxAttempts: 2 });
  if (spec.harness?.command !== undefined) {
    spec.harness.command.command = spec.harness.command.command.replaceAll('--retry 8', '--retry 0');
  }
  await rollout.submitTask({ spec });
  const [session] = await waitForEnd(rollout, 'engine', 90_000);
  expect(session?.outcome).to.equal(Outcome.INFRASTRUCTURE_ERROR);
  expect(session?.failure?.reason).to.equal(reason);
  expect(session?.failure?.boundary).to.equal(Boundary.PROVIDER);
  expect(session?.reward).to.equal(undefined);
  expect(session?.attempts.map((attempt) => attempt.failure?.reason)).to.deep.equal([reason, reason]);
}
