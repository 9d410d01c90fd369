// `polar status` on sessions whose reward is 0: why it is; and `polar regrade`, which grades them otherwise.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { polar, startPolar } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { leavesNothing } from '../support/leftovers.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { sleepMark } from '../support/sleep-mark.ts';
import { waitForEnd } from '../support/tasks.ts';

const WAIT_MS = 60_000;
const PREPARE =
  'git init -q && git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m start';
const LINES = 100;
const HIDDEN = '/polar/session/hidden.txt';
const CONFIG = {
  repo_dir: '/polar/session/workspace',
  test_command: `seq -f 'line %g' ${LINES}; grep -q 1 answer.txt && cat ${HIDDEN}`,
  expected_output_json: { answer: 'PASSED' },
};
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });

describe('polar status of a session that was graded', function () {
  this.timeout(2 * WAIT_MS);
  let mesh: Mesh;
  let rollout: Client<typeof RolloutService>;
  let sessionId: string;
  before(async () => {
    mesh = await startMesh({ defaultBackend: 'process' });
    rollout = createPlainClient(RolloutService, mesh.schedulerUrl);
    sessionId = await ended('graded', { evaluator: { strategy: 'test_on_output', config: CONFIG } });
  });
  after(() => mesh?.[Symbol.asyncDispose]());

  /** Its session, once it has ended. */
  const ended = async (
    taskId: string,
    more: Pick<MessageInitShape<typeof TaskSpecSchema>, 'evaluator'>,
    outcome = Outcome.COMPLETED,
  ): Promise<string> => {
    const content = Buffer.from('PASSED other\n');
    const upload = { step: { case: 'uploadFile' as const, value: { target: HIDDEN, content } } };
    const spec = create(TaskSpecSchema, {
      ...{ taskId, instruction: 'x', ...more },
      harness: { name: 'shell', command: { command: 'echo 1 > answer.txt' } },
      runtime: { prepare: [exec(PREPARE)], evalPrepare: { steps: [exec(PREPARE), upload] } },
    });
    await rollout.submitTask({ spec });
    const [session] = await waitForEnd(rollout, taskId, WAIT_MS);
    expect(session?.outcome, session?.failure?.message).to.equal(outcome);
    return session?.sessionId ?? '';
  };

  const status = (...args: string[]) => polar(['status', sessionId, '-c', mesh.topologyFile, ...args]);

  it('says why, with the end of what its tests wrote', async () => {
    const { code, stdout, stderr } = await status();
    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout).to.match(/^evaluation:$/m);
    expect(stdout).to.match(/^ {2}results: \{"other":"PASSED"\}$/m);
    expect(stdout).to.match(/^ {2}test_timeout: false$/m);
    expect(stdout).to.contain(`  | line ${LINES}\n  | PASSED other\n`).and.not.contain('line 1\n');
  });

  it('has all of it as JSON', async () => {
    const { sessions, evaluation } = JSON.parse((await status('--json')).stdout);
    expect(sessions[0]).to.include({ sessionId, sampleIndex: 0, reward: 0 });
    expect(evaluation).to.deep.include({ tests_parsed: 1, results: { other: 'PASSED' } });
    expect(evaluation.test_output_tail).to.match(/^line 1\n/);
  });

  it('says in a line that the reconstructor is not there', async () => {
    const { code, stdout, stderr } = await status('--trajectory-url', 'http://127.0.0.1:1');
    expect(code).to.equal(0);
    expect(stdout).to.contain('COMPLETED').and.not.contain('evaluation');
    expect(stderr).to.match(/^the evaluation of \S+ is not told by http:\/\/127\.0\.0\.1:1 .*\n$/);
  });

  it('asks for no traces', async () => {
    const trajectories = createPlainClient(TrajectoryService, mesh.reconstructorUrl);
    const { trajectory } = await trajectories.getTrajectory({ sessionId, summary: true });
    expect(trajectory).to.include({ sessionId, reward: 0, builder: '' });
    expect(trajectory?.traces).to.deep.equal([]);
    expect(trajectory?.evaluation).to.have.property('results');
  });

  describe('polar regrade', () => {
    const regrade = (...args: string[]) => polar(['regrade', ...args, '-c', mesh.topologyFile]);
    const written = (name: string, evaluator: object): string => {
      const file = join(mesh.folder, name);
      writeFileSync(file, stringify({ evaluator }));
      return file;
    };
    const right = (config: object = {}): object => ({
      strategy: 'test_on_output',
      config: { ...CONFIG, expected_output_json: { other: 'PASSED' }, ...config },
    });

    it("gives the same reward by the task's own evaluator, which has its own files again", async () => {
      const { code, stdout, stderr } = await regrade('graded');
      // How far it is, where it has taken a while.
      expect(stderr).to.match(/^(1 of 1 sessions\n)?$/);
      expect(code).to.equal(0);
      expect(stdout).to.match(
        new RegExp(`^${sessionId} +0\\.00 +0\\.00 +no +the results differ: 1 read, 1`, 'm'),
      );
      expect(stdout).to.match(
        /^1 graded again, 0 of them with another reward; mean reward 0.000 before, 0.000/m,
      );
    });

    it('gives another by other expectations, once, and leaves the session as it was', async () => {
      const file = written('right.yaml', right());
      const out = join(mesh.folder, 'rewards.jsonl');
      const before = await rollout.getSession({ sessionId });
      // As a kill would leave it.
      writeFileSync(out, '{"session_id": "s');
      const { code, stdout, stderr } = await regrade(sessionId, '--evaluator', file, '-o', out, '--json');
      expect(code, stderr).to.equal(0);
      const row = JSON.parse(stdout);
      expect(row).to.deep.include({
        session_id: sessionId,
        task_id: 'graded',
        attempt: 1,
        old_reward: 0,
        reward: 1,
      });
      expect(row.evaluation).to.deep.include({ resolved: true, results: { other: 'PASSED' } });
      expect(readFileSync(out, 'utf8')).to.equal(stdout);
      // No node is asked for what is in the file.
      const nowhere = ['--node-url', 'http://127.0.0.1:1'];
      const again = await regrade('graded', '--evaluator', file, '-o', out, ...nowhere);
      expect(again.stdout).to.match(/ 0\.00 +1\.00 +yes$/m);
      expect(readFileSync(out, 'utf8')).to.equal(stdout);
      const away = await regrade('graded', ...nowhere);
      expect(away.code).to.equal(3);
      expect(away.stderr).to.match(/^polar: MESH_UNREACHABLE: .*--node-url/);
      const other = await regrade('graded', '-o', out);
      expect([other.code, other.stderr]).to.deep.equal([
        ...[2, `polar: INVALID_REQUEST: ${out} has rewards by another evaluator: name another file\n`],
      ]);
      expect(await rollout.getSession({ sessionId })).to.deep.equal(before);
    });

    it("goes by the rules of others: a row of SWE-bench's on the same changes; not a verifier's, whose sandbox is gone", async () => {
      const instance = { instance_id: 'a', repo: 'pallets/flask', FAIL_TO_PASS: ['other'], PASS_TO_PASS: [] };
      const { repo_dir } = CONFIG;
      const row = {
        strategy: 'swebench_harness',
        config: { repo_dir, instance, test_command: 'echo PASSED other' },
      };
      const resolved = await regrade(sessionId, '--evaluator', written('row.yaml', row), '--json');
      expect(JSON.parse(resolved.stdout)).to.deep.include({ old_reward: 0, reward: 1 });
      expect(JSON.parse(resolved.stdout).evaluation).to.include({ resolution: 'FULL' });
      const verifier = { strategy: 'verifier_result_file', config: { result_file: '/tmp/reward.json' } };
      const gone = await regrade(sessionId, '--evaluator', written('verifier.yaml', verifier), '--json');
      expect(JSON.parse(gone.stdout)).to.include({ old_reward: 0, reason: 'NOTHING_TO_GRADE' });
    });

    it('gives none where the evaluator is none, or asks for what is over', async () => {
      const wrong = await regrade(
        sessionId,
        '--evaluator',
        written('wrong.yaml', { strategy: 'test_on_output' }),
      );
      expect(wrong.code).to.equal(2);
      expect(wrong.stderr).to.match(
        /^polar: INVALID_TASK: .*wrong\.yaml.*\n.*evaluator\.config\.test_command/,
      );
      const moved = await regrade(
        sessionId,
        '--evaluator',
        written('moved.yaml', right({ repo_dir: '/testbed' })),
      );
      expect(moved.code).to.equal(1);
      expect(moved.stdout).to.match(/ 0\.00 +– .*INVALID_TASK: /);
      const judged = { strategy: 'rubric', config: { judge: 'nobody', rubric: 'x' } };
      const { stdout } = await regrade(sessionId, '--evaluator', written('judged.yaml', judged), '--json');
      expect(JSON.parse(stdout)).to.include({ session_id: sessionId, old_reward: 0, reason: 'INVALID_TASK' });
    });

    it('says once that an evaluator of its own can be loaded by no node', async () => {
      const file = written('own.yaml', { strategy: 'mine/own.ts', config: {} });
      for (const flags of [[], ['--json']]) {
        const { code, stdout, stderr } = await regrade('graded', '--evaluator', file, ...flags);
        expect([code, stdout]).to.deep.equal([2, '']);
        expect(stderr).to.match(
          /^polar: EVALUATOR_PLUGIN_INVALID: evaluator mine\/own\.ts: this node has no plugins_dir\n$/,
        );
      }
    });

    it('says that nothing is stored of what was graded without changes; its outcome is', async () => {
      const id = await ended('plain', { evaluator: { strategy: 'session_completed' } });
      const none = await regrade(id, '--evaluator', written('tests.yaml', right()), '--json');
      expect(none.code).to.equal(1);
      expect(JSON.parse(none.stdout)).to.include({ reason: 'NOTHING_TO_GRADE', old_reward: 1 });
      expect((await regrade('plain')).stdout).to.match(/ 1\.00 +1\.00/);
      await rollout.submitTask({
        spec: { taskId: 'unopened', instruction: 'x', harness: { name: 'external', modelName: 'm' } },
      });
      const empty = await regrade('unopened');
      expect([empty.code, empty.stderr]).to.deep.equal([
        ...[1, '1 of 1 sessions have not ended, or not run to an end, and are left out\n'],
      ]);
    });

    it('grades what its own evaluator could not', async () => {
      const config = { ...CONFIG, rewards_command: 'echo none' };
      const evaluator = { strategy: 'test_on_output', config };
      const id = await ended('unrewarded', { evaluator }, Outcome.TASK_ERROR);
      const { code, stdout } = await regrade(
        'unrewarded',
        '--evaluator',
        written('fixed.yaml', right()),
        '--json',
      );
      expect(code).to.equal(0);
      expect(JSON.parse(stdout)).to.include({
        session_id: id,
        old_reward: null,
        reward: 1,
        outcome: 'COMPLETED',
      });
    });

    /** Its sandboxes that are there now. */
    const again = async (): Promise<number> => {
      const port = /runtime_prewarm_port: (\d+)/.exec(readFileSync(mesh.topologyFile, 'utf8'))?.[1];
      const runtimes = createPlainClient(RuntimeService, `http://127.0.0.1:${port}`);
      const { runtimes: all } = await runtimes.listRuntimes({});
      return all.filter(({ owner }) => owner?.purpose === 'evaluate_again').length;
    };

    it('has its file to itself; stops where it is stopped, and leaves nothing', async () => {
      const nap = sleepMark();
      const file = written('slow.yaml', right({ test_command: nap }));
      const out = join(mesh.folder, 'slow.jsonl');
      const flags = ['--evaluator', file, '-o', out];
      const { child, ended: over } = startPolar(['regrade', sessionId, ...flags, '-c', mesh.topologyFile]);
      await eventually('its sandbox', async () => (await again()) === 1);
      const { code, stderr } = await regrade('graded', ...flags);
      expect([code, stderr]).to.deep.equal([
        2,
        `polar: INVALID_REQUEST: ${out} is being written by another command: wait for its end, or name another file\n`,
      ]);
      child.kill('SIGINT');
      await over;
      await eventually('it is gone', async () => (await again()) === 0);
      await leavesNothing(mesh.nodeFolder, [nap]);
    });

    it('goes on where an evaluator was killed while it graded', async () => {
      const file = written('killed.yaml', right({ test_command: 'sleep 2; echo PASSED other' }));
      const graded = regrade(sessionId, '--evaluator', file, '--json');
      await eventually('it is graded', async () => (await again()) === 1);
      await sleep(1_000);
      await mesh.kill('evaluator');
      await mesh.start('evaluator');
      const { code, stdout, stderr } = await graded;
      expect(code, stderr).to.equal(0);
      expect(JSON.parse(stdout)).to.include({ session_id: sessionId, reward: 1 });
    });
  });
});
