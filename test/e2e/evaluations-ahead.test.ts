// Sandboxes of evaluations, made while their sessions run: through the whole mesh, and through kills of what holds them.
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import type { Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { PolicyService } from '../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient, createServiceClient } from '../../services/common/client.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { curlTask, spoken, waitForEnd } from '../support/tasks.ts';

const REPOSITORY = 'git init -q . && git -c user.name=n -c user.email=e@e commit -q --allow-empty -m base';
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });

/** What a service has told of sandboxes. */
interface Line {
  readonly msg: string;
  readonly session_id?: string;
  readonly attempt?: number;
  readonly purpose?: string;
  readonly cause?: string;
}

describe('evaluations that are prepared ahead', function () {
  this.timeout(120_000);
  let mesh: Mesh;
  let rollout: Client<typeof RolloutService>;
  before(async () => {
    mesh = await startMesh({ runSlots: 2 });
    rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  /** `evalCommand` prepares each evaluation anew, a run takes as long as `run`. */
  const graded = (taskId: string, samples: number, evalCommand: string, run: string): TaskSpec =>
    curlTask(taskId, samples, 0, {
      maxAttempts: 10,
      harness: { name: 'shell', modelName: 'm', command: { command: `echo x > made; ${run}` } },
      runtime: {
        prepare: [exec(REPOSITORY)],
        evalPrepare: { steps: [exec(`${REPOSITORY} && ${evalCommand}`)] },
        prepareEach: true,
      },
      evaluator: {
        strategy: 'test_on_output',
        config: {
          repo_dir: '/polar/session/workspace',
          test_command: 'cat made; echo PASSED one',
          expected_output_json: { one: 'PASSED' },
        },
      },
    });
  const lines = (): Line[] =>
    mesh
      .log('runtime-prewarm')
      .split('\n')
      .filter((line) => line.includes('"purpose":"evaluate"'))
      .map((line) => JSON.parse(line));
  const of = (msg: string, sessions: readonly Session[]): Line[] =>
    lines().filter((line) => line.msg === msg && sessions.some((one) => one.sessionId === line.session_id));

  it('have one sandbox each, which goes with the grading', async () => {
    await rollout.submitTask({ spec: graded('ahead', 4, 'sleep 0.5', 'sleep 1') });
    const sessions = await waitForEnd(rollout, 'ahead', 60_000);
    expect(sessions.map(({ reward }) => reward)).to.deep.equal([1, 1, 1, 1]);
    await leavesNothing(mesh.nodeFolder, []);
    // A line is written a moment after the sandbox went.
    await eventually('lines of all', () => of('runtime removed', sessions).length >= 4);
    expect(of('runtime prepared', sessions)).to.have.length(4);
    expect(of('runtime removed', sessions).map(({ cause }) => cause)).to.deep.equal(
      Array(4).fill('released'),
    );
  });

  it('have none any more where the session is cancelled', async () => {
    const nap = sleepMark();
    await rollout.submitTask({ spec: graded('cancelled', 2, nap, 'sleep 600') });
    const { sessions } = await rollout.listSessions({ taskId: 'cancelled' });
    await eventually('they run', async () => {
      const now = await rollout.getTask({ taskId: 'cancelled' });
      return now.task?.sessionsByState['running'] === 2;
    });
    await rollout.cancelTask({ taskId: 'cancelled' });
    await waitForEnd(rollout, 'cancelled', 30_000);
    await leavesNothing(mesh.nodeFolder, [nap]);
    expect(of('runtime prepared', sessions)).to.deep.equal([]);
  });

  it('are graded, and leave nothing, whoever is killed meanwhile', async () => {
    const prepared = async (attemptMin: number): Promise<void> => {
      await eventually(`an evaluation's sandbox of attempt ${attemptMin} or later`, () =>
        of('runtime prepared', sessions).some(({ attempt = 0 }) => attempt >= attemptMin),
      );
    };
    // No run ends before all were killed: each waits for the answer to a call.
    const policy = createPlainClient(PolicyService, mesh.proxyUrl);
    await policy.pause({});
    await rollout.submitTask({ spec: graded('killed', 2, 'true', spoken('x')) });
    const { sessions } = await rollout.listSessions({ taskId: 'killed' });
    await prepared(1);
    await mesh.kill('runtime-prewarm');
    await mesh.start('runtime-prewarm');
    await prepared(2);
    await Promise.all([mesh.kill('evaluator'), mesh.kill('scheduler')]);
    await Promise.all([mesh.start('evaluator'), mesh.start('scheduler')]);
    await policy.resume({});
    const ended = await waitForEnd(rollout, 'killed', 90_000);
    expect(ended.map(({ reward }) => reward)).to.deep.equal([1, 1]);
    await leavesNothing(mesh.nodeFolder, []);
  });
});
