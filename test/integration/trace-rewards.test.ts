// Rewards of single traces on their whole way: a command of the task reads the session's calls, the mesh puts its rewards
// onto the traces whichever of build and grading comes first, and a trainer in Python, an export and a filter see them.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Outcome, type Session } from '../../gen/ts/polar/common/v1/session_pb.js';
import { EvaluatorService } from '../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { polar, ROOT } from '../support/cli.ts';
import { startJudge, type TestJudge } from '../support/judge.ts';
import { type Mesh, startMesh } from '../support/mesh.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

/** Two conversations, of two turns and of one; and a change for the tests to look at. */
const AGENT = `
import json, os, urllib.request
def call(messages):
    body = json.dumps({'model': 'm', 'messages': messages}).encode()
    request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body, {
        'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'content-type': 'application/json'})
    return json.load(urllib.request.urlopen(request))['choices'][0]['message']
main = [{'role': 'user', 'content': 'count'}]
main += [call(main), {'role': 'user', 'content': 'go on'}]
call([{'role': 'user', 'content': 'a helper'}])
call(main)
open('answer.txt', 'w').write('done')
# Would be what its grader loads, if that looked for its modules among the agent's files.
open('json.py', 'w').write('raise SystemExit(1)')
`;

/** By what was said: the helper's call has half a point, and the one that went on a quarter. */
const GRADER = `
import json, os
assert os.path.exists(os.environ['REPO_DIR'] + '/answer.txt')
calls = [json.loads(line) for line in open('/polar/session/calls.jsonl')]
rewards = {}
for one in calls:
    if one['messages'] and one['messages'][0]['content'] == 'a helper':
        rewards[one['call_id']] = 0.5
    elif one['base_call_id'] is not None:
        rewards[one['call_id']] = 0.25
print(json.dumps({'trace_rewards': rewards}))
`;

const READER = `
import json, sys, polar_mesh
from polar_mesh import rewards
with polar_mesh.Client(sys.argv[1], sys.argv[2]) as client:
    wanted = polar_mesh.Filter(drop_zero_variance=True)
    name = 'reader-' + sys.argv[3].replace('_', '-')
    batch = client.stream(name, task_id=sys.argv[3], filter=wanted).next(timeout_s=30)
    print(json.dumps([[[len(trace.spans), one.reward_of(trace)] for trace in one.traces] for one in batch.trajectories]))
    print(json.dumps([rewards.rewards_of_traces(one).tolist() for one in batch.trajectories]))
    batch.ack()
`;

/** The session of a task's first sample, graded again: by the task's own evaluator, and by another one. */
const REGRADER = `
import asyncio, json, sys, polar_mesh
from polar_mesh import aio, errors
with polar_mesh.Client(sys.argv[2]) as client:
    session = client.list_sessions(sys.argv[3])[0].session_id
def told(answer):
    print(json.dumps([answer.old_reward, answer.reward, sorted(one.reward for one in answer.trace_rewards)]))
with polar_mesh.EvaluatorClient(sys.argv[1]) as evaluator:
    told(evaluator.evaluate_session(session, timeout_s=60))
async def other():
    config = json.loads(sys.argv[4])
    async with aio.EvaluatorClient(sys.argv[1]) as evaluator:
        told(await evaluator.evaluate_session(session, {"strategy": "test_on_output", "config": config}))
        try:
            await evaluator.evaluate_session(session, {"strategy": "test_on_output", "config": {}})
        except errors.InvalidArgument as error:
            print(json.dumps([error.reason, *(one.field for one in error.fields)]))
asyncio.run(other())
`;

/** Calls and reward of each trace of a session; the session's is 1. */
const TRACES = {
  prefix_merging: [
    [2, 0.25],
    [1, 0.5],
  ],
  per_request: [
    [1, 1],
    [1, 0.5],
    [1, 0.25],
  ],
};

const PYTHON = join(ROOT, '.venv/bin/python');
const ENV = { PYTHONPATH: join(ROOT, 'clients/python/src') };
const CONFIG = {
  repo_dir: '/polar/session/workspace',
  test_command: 'test -e answer.txt && echo PASSED answer',
  expected_output_json: { answer: 'PASSED' },
};
const PREPARE =
  'git init -q && git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m start';

describe('rewards of traces, through the mesh', function () {
  this.timeout(120_000);
  let mesh: Mesh;
  let judge: TestJudge;
  before(async () => {
    judge = await startJudge();
    const judges = { fair: { base_url: judge.url, model: 'm' } };
    mesh = await startMesh({ defaultBackend: 'process', evaluators: { judges } });
  });
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
    await judge[Symbol.asyncDispose]();
  });

  const graded = async (taskId: string, builder: string, rewardsCommand: string): Promise<Session[]> => {
    const rollout = createPlainClient(RolloutService, mesh.schedulerUrl);
    const config = { ...CONFIG, rewards_command: rewardsCommand };
    const spec = curlTask(taskId, 2, 0, {
      harness: { name: 'shell', modelName: 'm', command: { command: `python3 -c "${AGENT}"` } },
      runtime: { prepare: [{ step: { case: 'exec', value: { command: PREPARE } } }] },
      builder: { strategy: builder },
      evaluator: { strategy: 'test_on_output', config },
    });
    await rollout.submitTask({ spec });
    return await waitForEnd(rollout, taskId, 60_000);
  };

  for (const builder of ['prefix_merging', 'per_request'] as const) {
    const traces = TRACES[builder];
    it(`are on the traces of ${builder}, beside the outcome`, async () => {
      const sessions = await graded(builder, builder, `python3 -c "${GRADER}"`);
      expect(sessions.map(({ outcome, reward }) => [outcome, reward])).to.deep.equal([
        [Outcome.COMPLETED, 1],
        [Outcome.COMPLETED, 1],
      ]);
      const args = ['-c', READER, mesh.schedulerUrl, mesh.reconstructorUrl, builder];
      const { stdout } = await promisify(execFile)(PYTHON, args, { env: ENV });
      const [seen, counted] = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(seen).to.deep.equal([traces, traces]);
      expect(counted).to.deep.equal([1, 2].map(() => traces.map(([, reward]) => reward)));
      const [{ sessionId = '' } = {}] = sessions;
      const own = traces.map(([, reward]) => (reward === 1 ? undefined : reward));
      const client = createPlainClient(TrajectoryService, mesh.reconstructorUrl);
      const { trajectory } = await client.getTrajectory({ sessionId });
      expect(trajectory?.traces.map(({ reward }) => reward)).to.deep.equal(own);
      const other = builder === 'per_request' ? 'prefix_merging' : 'per_request';
      const out = join(mesh.folder, `${other}.jsonl`);
      const again = await polar([
        'rebuild',
        '-c',
        mesh.topologyFile,
        builder,
        '--builder',
        other,
        '--traces',
        out,
      ]);
      expect(again.code, again.stderr).to.equal(0);
      const rebuilt = readFileSync(out, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(rebuilt.map(({ calls, reward = 1 }) => [calls.length, reward])).to.deep.equal([
        ...TRACES[other],
        ...TRACES[other],
      ]);
      const lines = (await polar(['export', '-c', mesh.topologyFile, sessionId, '--traces'])).stdout.trim();
      expect(lines.split('\n').map((line) => JSON.parse(line).reward)).to.deep.equal(own);
    });
  }

  it('are given anew, by the calls that are stored, to who asks for another grading', async () => {
    const rewards_command = `python3 -c "import json; print(json.dumps({'reward': 0.5, 'trace_rewards': {json.loads(line)['call_id']: 2 for line in open('/polar/session/calls.jsonl')}}))"`;
    const args = [mesh.proxyUrl, mesh.schedulerUrl, 'prefix_merging'];
    const config = JSON.stringify({ ...CONFIG, rewards_command });
    const { stdout } = await promisify(execFile)(PYTHON, ['-c', REGRADER, ...args, config], { env: ENV });
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).to.deep.equal([
      [1, 1, [0.25, 0.5]],
      [1, 0.5, [2, 2, 2]],
      ['INVALID_TASK', 'evaluator.config.test_command', 'evaluator.config.expected_output_json'],
    ]);
  });

  it('are given anew by a judge, who is shown what was said then, beside the outcome of the tests', async () => {
    judge.answers('{"scores": {"conversation_1": -5, "conversation_2": 5}}');
    const rollout = createPlainClient(RolloutService, mesh.schedulerUrl);
    const [session] = (await rollout.listSessions({ taskId: 'prefix_merging' })).sessions;
    const outcome = { strategy: 'test_on_output', config: CONFIG };
    const config = { judge: 'fair', rubric: 'Praise care.', outcome };
    const evaluator = { strategy: 'rubric', config };
    const request = { sessionId: session?.sessionId ?? '', evaluator };
    const evaluations = createPlainClient(EvaluatorService, mesh.proxyUrl);
    const answer = await evaluations.evaluateSession(request, { timeoutMs: 60_000 });
    expect(answer).to.include({ oldReward: 1, reward: 1 });
    expect(answer.evaluation).to.include({ resolved: true, judge: 'fair' });
    // The helper's conversation ended first; the main one has two calls.
    const rewards = answer.traceRewards.map(({ reward }) => reward.toFixed(1));
    expect(rewards.toSorted()).to.deep.equal(['0.8', '1.2', '1.2']);
    const [asked] = judge.asked;
    expect(asked?.body.messages.at(-1)?.content).to.contain('a helper').and.to.contain('go on');
  });

  it('that are wrong end the session with its trajectory and without a reward, and name what is wrong', async () => {
    const [session] = await graded('wrong', 'per_request', `echo '{"trace_rewards": {"nobody": 1}}'`);
    expect(session?.outcome).to.equal(Outcome.TASK_ERROR);
    expect(session?.reward).to.equal(undefined);
    expect(session?.failure?.reason).to.equal('TRACE_REWARDS_INVALID');
    expect(session?.failure?.message).to.contain('trace_rewards.nobody: the session has no such call');
  });
});
