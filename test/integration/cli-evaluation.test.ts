// `polar status` on sessions whose reward is 0: why it is.
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { polar } from '../support/cli.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { waitForEnd } from '../support/tasks.ts';

const WAIT_MS = 60_000;
const PREPARE =
  'git init -q && git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m start';
const LINES = 100;

describe('polar status of a session that was graded', function () {
  this.timeout(2 * WAIT_MS);
  let mesh: Mesh;
  let sessionId: string;
  before(async () => {
    mesh = await startMesh({ defaultBackend: 'process' });
    const config = {
      repo_dir: '/polar/session/workspace',
      test_command: `seq -f 'line %g' ${LINES}; echo PASSED other`,
      expected_output_json: { answer: 'PASSED' },
    };
    const spec = create(TaskSpecSchema, {
      ...{ taskId: 'graded', instruction: 'x' },
      harness: { name: 'shell', command: { command: 'echo 1 > answer.txt' } },
      runtime: { prepare: [{ step: { case: 'exec', value: { command: PREPARE } } }] },
      evaluator: { strategy: 'test_on_output', config },
    });
    const rollout = createPlainClient(RolloutService, mesh.schedulerUrl);
    await rollout.submitTask({ spec });
    const [ended] = await waitForEnd(rollout, 'graded', WAIT_MS);
    expect(ended?.reward, ended?.failure?.message).to.equal(0);
    sessionId = ended?.sessionId ?? '';
  });
  after(() => mesh?.[Symbol.asyncDispose]());

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
});
