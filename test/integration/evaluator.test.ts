import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { EvaluatorService } from '../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import type { Evaluated, Failed } from '../../gen/ts/polar/event/v1/work_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { EXEC_OUTPUT_BYTES_MAX } from '../../services/common/limits.ts';
import { EVALUATORS } from '../../services/common/specs/catalogue.ts';
import {
  type Case,
  COMMIT,
  CONFIG,
  Evaluations,
  exec,
  PREPARE,
  REPO,
  SOLVE,
  TEST,
} from '../support/evaluations.ts';
import { eventually } from '../support/eventually.ts';
import { newRef, type TestNode } from '../support/node.ts';

describe('evaluator', () => {
  let evaluations: Evaluations;
  let node: TestNode;
  const evaluated = (given: Case): Promise<Evaluated> => evaluations.evaluated(given);
  const failed = (given: Case): Promise<Failed> => evaluations.failed(given);
  before(async () => {
    evaluations = await Evaluations.open();
    node = evaluations.node;
  });
  after(() => evaluations[Symbol.asyncDispose]());
  afterEach(() => evaluations.checkClear());

  describe('session_completed', () => {
    for (const [outcome, reward] of [
      [Outcome.COMPLETED, 1],
      [Outcome.TIMEOUT, 0],
      [Outcome.HARNESS_ERROR, 0],
    ] as const) {
      it(`gives ${reward} for ${Outcome[outcome]}`, async () => {
        const verdict = await evaluated({ strategy: 'session_completed', config: {}, outcome });
        expect(verdict.reward).to.equal(reward);
      });
    }
  });

  describe('test_on_output', () => {
    it('takes all that git can add, and tells what it cannot: repositories inside the one', async () => {
      const inside = `git init -q empty; git init -q own; (cd own; echo 1 > one; git add one; ${COMMIT} one)`;
      const { reward, evaluation } = await evaluated({ agent: `${inside}; ${SOLVE}` });
      expect({ reward, ...evaluation }).to.deep.include({ reward: 1, left_out_files: ['empty/', 'own'] });
    });

    it('gives 1 for changes that pass, new files too', async () => {
      const { reward, evaluation } = await evaluated({ agent: SOLVE });
      expect({ reward, ...evaluation }).to.deep.include({
        reward: 1,
        ...{ resolved: true, empty_generation: false, failed_apply_patch: false, test_timeout: false },
        applied_by: 'git',
        patch_files: ['a.py', 'new.txt'],
        test_exit_code: 0,
        results: { test_a: 'PASSED', 'T.test_new': 'PASSED' },
      });
    });

    it('finds expected names that hold a dash', async () => {
      const config = {
        test_command: 'echo "PASSED sums - small"; echo "FAILED sums - large - is 1"',
        expected_output_json: { 'sums - small': 'PASSED', 'sums - large': 'FAILED' },
      };
      expect((await evaluated({ agent: SOLVE, config })).reward).to.equal(1);
    });

    it('reads what node --test prints, and nothing that its tests print', async function () {
      const program = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => existsSync(path));
      if (program === undefined) return this.skip();
      const tests = [
        'it("adds", () => {})',
        'it("prints", () => console.log("ok 9 - faked"))',
        'it("is off", { skip: true })',
      ];
      const agent = (last: string): string =>
        `printf '%s' 'const { describe, it } = require("node:test"); describe("sums", () => { ${[...tests, last].join('; ')} });' > a.test.cjs`;
      const config = {
        test_format: 'tap',
        test_command: `${program} --test --test-reporter=tap a.test.cjs`,
        expected_output_json: {
          ...{ sums: 'PASSED', 'sums > adds': 'PASSED', 'sums > prints': 'PASSED' },
          'sums > is off': 'SKIPPED',
        },
      };
      const { reward, evaluation } = await evaluated({ agent: agent(''), config });
      expect({ reward, ...evaluation }).to.deep.include({ reward: 1, results: config.expected_output_json });
      const broken = await evaluated({ agent: agent('it("ends", () => process.exit(0))'), config });
      expect([broken.reward, broken.evaluation?.['tests_parsed']]).to.deep.equal([0, 1]);
    });

    it('sees what the agent committed, staged, or hid from its own index', async () => {
      const agents = [
        `${SOLVE}; git add -A; ${COMMIT} done`,
        `${SOLVE}; git add -A`,
        `${SOLVE}; git update-index --assume-unchanged a.py`,
        `${SOLVE}; git checkout -q -b other; git add -A; ${COMMIT} one; echo x >> keep.txt; ${COMMIT} two keep.txt`,
        `${SOLVE}; rm .git/index`,
        `git config diff.noprefix true; git config core.autocrlf true; git config diff.external true; ${SOLVE}`,
      ];
      for (const agent of agents) expect((await evaluated({ agent })).reward, agent).to.equal(1);
    });

    it('gives 0 for changes that fail', async () => {
      const { reward, evaluation } = await evaluated({ agent: "printf 'a = 1\\n' > a.py" });
      expect(reward).to.equal(0);
      expect(evaluation?.['results']).to.deep.equal({ 'T.test_new': 'FAILED', test_a: 'PASSED' });
      expect(evaluation?.['test_output_tail']).to.contain('FAILED t.py::T::test_new');
    });

    it('reads what comes last of an output that is too long', async () => {
      const test_command = `head -c ${EXEC_OUTPUT_BYTES_MAX + 100} /dev/zero; echo; ${TEST}`;
      const { reward, evaluation } = await evaluated({ agent: SOLVE, config: { test_command } });
      expect([reward, evaluation?.['test_output_cut']]).to.deep.equal([1, true]);
    });

    it('gives 0 for no changes, and for those of excluded files alone', async () => {
      const nothing = await evaluated({});
      expect([nothing.reward, nothing.evaluation?.['empty_generation']]).to.deep.equal([0, true]);
      const agent = 'mkdir __pycache__; echo x > __pycache__/a.pyc; echo y > notes.md';
      const excluded = await evaluated({ agent, config: { exclude_patterns: ['*.md'] } });
      expect([excluded.reward, excluded.evaluation?.['empty_generation']]).to.deep.equal([0, true]);
      expect(excluded.evaluation?.['excluded_files']).to.have.members(['__pycache__/a.pyc', 'notes.md']);
    });

    it('says of committed changes in a repository made anew that they are not graded', async () => {
      const anew = 'rm -rf .git; git init -q; git add -A';
      const committed = await evaluated({ agent: `${SOLVE}; ${anew}; ${COMMIT} anew` });
      expect([committed.reward, committed.evaluation?.['empty_generation']]).to.deep.equal([0, true]);
      expect(committed.evaluation?.['patch_error_tail']).to.contain('what was committed in the session');
      expect((await evaluated({})).evaluation).to.not.have.property('patch_error_tail');
    });

    it('leaves excluded files as they were', async () => {
      const config = { exclude_patterns: ['a.py'] };
      const { evaluation: left } = await evaluated({ agent: SOLVE, config });
      expect(left?.['results']).to.deep.equal({ test_a: 'FAILED', 'T.test_new': 'PASSED' });
      const unread = { ...config, patch_command: 'diff -c keep.txt a.py; true' };
      const { reward, evaluation } = await evaluated({ agent: SOLVE, config: unread });
      expect([reward, evaluation?.['failed_apply_patch']]).to.deep.equal([0, true]);
      expect(evaluation?.['apply_output_tail']).to.contain('exclude_patterns');
    });

    it('carries binary files, file modes, deletions and odd names', async () => {
      const agent = `printf '\\0\\377\\1' > 'b in.bin'; chmod +x a.py; rm keep.txt; printf x > 'ünï "q".txt'`;
      const test_command =
        'test -x a.py && test ! -e keep.txt && test -e \'ünï "q".txt\' && cksum < "b in.bin" | grep -q "^[0-9]* 3$" && echo PASSED all';
      const config = { test_command, expected_output_json: '{"all": "PASSED"}' };
      expect((await evaluated({ agent, config })).reward).to.equal(1);
    });

    it('grades on files that only the evaluation has', async () => {
      const hidden = [
        ...PREPARE,
        exec(
          `cd ${REPO} && echo hidden > hidden.txt && git add -A && ${COMMIT} hidden && echo more > untracked.txt`,
        ),
      ];
      const config = { test_command: `${TEST}; cat hidden.txt untracked.txt` };
      const { reward, evaluation } = await evaluated({
        agent: SOLVE,
        config,
        runtime: { evalPrepare: { steps: hidden } },
      });
      expect(reward).to.equal(1);
      expect(evaluation?.['test_output_tail']).to.contain('hidden\nmore');
    });

    it('applies with fuzz what has moved a little', async function () {
      // The sandbox has the programs of the host.
      if (spawnSync('patch', ['--version']).error !== undefined) this.skip();
      const long = [...PREPARE, exec(`cd ${REPO} && seq 1 30 > long.txt && git add -A && ${COMMIT} long`)];
      const moved = await evaluated({
        agent: `sed -i 's/^5$/five/' long.txt; ${SOLVE}`,
        config: { test_command: `${TEST}; grep -c five long.txt` },
        runtime: {
          prepare: long,
          evalPrepare: { steps: [...long, exec(`sed -i 's/^2$/two/' ${REPO}/long.txt`)] },
        },
      });
      expect([moved.reward, moved.evaluation?.['applied_by']]).to.deep.equal([1, 'patch']);
    });

    it('gives 0 for what does not apply', async () => {
      const gone = [...PREPARE, exec(`cd ${REPO} && git rm -q a.py && ${COMMIT} gone`)];
      const not = await evaluated({
        agent: "printf 'a = 1\\n' > a.py",
        runtime: { evalPrepare: { steps: gone } },
      });
      expect(not.reward).to.equal(0);
      expect(not.evaluation).to.include({ failed_apply_patch: true, resolved: false });
      expect(not.evaluation?.['apply_output_tail']).to.contain('a.py');
    });

    it('gives 0 for tests that do not end', async () => {
      const config = { test_command: `${TEST}; sleep 60`, test_timeout: 3 };
      const { reward, evaluation } = await evaluated({ agent: SOLVE, config });
      expect(reward).to.equal(0);
      expect(evaluation).to.deep.include({ test_timeout: true, tests_parsed: 2 });
    });

    it('gives 0 where the agent destroyed its repository', async () => {
      const gone = await evaluated({ agent: `cd /; rm -rf ${REPO}` });
      expect(gone.reward).to.equal(0);
      expect(gone.evaluation).to.have.property('patch_exit_code');
      expect((await evaluated({ agent: `${SOLVE}; rm -rf .git` })).reward).to.equal(0);
    });

    describe('rewards of traces', () => {
      const calls = ['main', 'sub', 'main'].map((role, index) =>
        create(CompletionSchema, {
          ...{ callId: `c${index}`, index, role, startSeq: BigInt(2 * index), endSeq: BigInt(2 * index + 1) },
          ...{ replyDigest: `r${index}`, messageBodies: { [`r${index}`]: `{"content":"reply ${index}"}` } },
        }),
      );
      const rewarded = (rewards_command: string, more: object = {}): Case => ({
        ...{ agent: SOLVE, calls, config: { rewards_command, ...more } },
      });
      const own = ({ traceRewards }: Evaluated) => traceRewards.map(({ callId, reward }) => [callId, reward]);

      it('are what a command prints that has read the calls, beside the outcome', async () => {
        const command = `python3 -c '
import json
calls = [json.loads(line) for line in open("/polar/session/calls.jsonl")]
print(json.dumps({"trace_rewards": {one["call_id"]: 0.5 if one["role"] == "sub" else len(one["reply"]["content"])
    for one in calls if one["call_id"] != "c0"}}))'`;
        const verdict = await evaluated(rewarded(command));
        expect(verdict.reward).to.equal(1);
        expect(own(verdict)).to.deep.equal([
          ['c1', 0.5],
          ['c2', 7],
        ]);
        expect(verdict.evaluation).to.include({ resolved: true, trace_rewards: 2 });
      });

      it('are none where the command gives none, and where no test ran', async () => {
        const none = `echo '{"trace_rewards": {}}'`;
        expect(own(await evaluated(rewarded(none)))).to.deep.equal([]);
        const empty = await evaluated({ calls, config: { rewards_command: 'exit 3' } });
        expect([empty.reward, own(empty)]).to.deep.equal([0, []]);
      });

      it('are given whatever tested code has left where the calls are to lie', async () => {
        const command = `python3 -c '
import json
print(json.dumps({"trace_rewards": {json.loads(line)["call_id"]: 1 for line in open("/polar/session/calls.jsonl")}}))'`;
        for (const left of [
          'mkdir -p /polar/session/calls.jsonl/in; chmod 0 /polar/session/calls.jsonl',
          'ln -s /polar/session /polar/session/calls.jsonl; chmod a-w /polar/session',
          'rm -rf /polar/session; ln -s session /polar/session',
          'rm -rf /polar; touch /polar',
        ]) {
          const verdict = await evaluated(rewarded(command, { test_command: `echo FAILED a; ${left}` }));
          expect([verdict.reward, own(verdict).length], left).to.deep.equal([0, 3]);
        }
      });

      it('are refused, never guessed, where one is wrong; each is named', async () => {
        const wrong = async (command: string, why: RegExp, more: object = {}): Promise<void> => {
          const { failure, stage } = await failed(rewarded(command, more));
          expect([failure?.reason, failure?.infrastructure, stage]).to.deep.equal([
            'TRACE_REWARDS_INVALID',
            false,
            'evaluate',
          ]);
          expect(failure?.message).to.match(why);
        };
        const keys = `echo '{"trace_rewards": {"c0": NaN, "c1": 1000001, "c2": "1", "c9": 1}, "rewards": 1}'`;
        await wrong(keys, /c0: .*c1: .*c2: .*rewards: unknown key/s);
        await wrong(
          `echo '{"trace_rewards": {"c0": 1, "c9": 1}}'`,
          /trace_rewards.c9: the session has no such call/,
        );
        await wrong('echo 0.5, all of them', /printed no JSON: 0.5, all/);
        await wrong('echo why >&2; exit 3', /exit code 3: why/);
        await wrong('sleep 60', /did not end in rewards_timeout \(1 s\)/, { rewards_timeout: 1 });
      });
    });

    it("takes the task's own patch command, and its environment", async () => {
      const config = { patch_command: 'git diff --binary $WHAT' };
      const unstaged = await evaluated({
        agent: `${SOLVE}; git add -N new.txt`,
        config,
        env: { WHAT: 'HEAD' },
      });
      expect(unstaged.reward).to.equal(1);
      const untracked = await evaluated({ agent: SOLVE, config });
      expect(untracked.evaluation?.['results']).to.deep.equal({ 'T.test_new': 'FAILED', test_a: 'PASSED' });
      expect((await evaluated({ config })).evaluation?.['empty_generation']).to.equal(true);
    });

    it('tells a patch command of the agent that fails from one of the task', async () => {
      const agent = await evaluated({ agent: 'rm keep.txt', config: { patch_command: 'cat keep.txt >&2' } });
      expect([agent.reward, agent.evaluation?.['patch_exit_code']]).to.deep.equal([0, 1]);
      const task = await failed({ config: { patch_command: 'no-such-command' } });
      expect(task.failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(task.stage).to.equal('evaluate');
      const elsewhere = exec('mkdir /polar/session/elsewhere');
      const runtime = { evalPrepare: { steps: [elsewhere] } };
      const fresh = await failed({ agent: SOLVE, config: { patch_command: 'git diff' }, runtime });
      expect(fresh.failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(fresh.failure?.message).to.contain(`no ${REPO}`);
    });

    it('names a repository that is not there', async () => {
      const { failure } = await failed({ config: { repo_dir: '/polar/session/nowhere' } });
      expect(failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(failure?.message).to.contain('repo_dir');
    });

    it('blames neither agent nor task for a machine that is too slow', async () => {
      const slow = await failed({ agent: SOLVE, config: { apply_timeout: 0.001 } });
      expect(slow.failure).to.include({ reason: 'EVALUATION_TIMEOUT', infrastructure: true });
    });

    it('gives no reward where changes cannot be read before there are any', async () => {
      const runtime = { env: { TMPDIR: '/polar/session/nowhere' } };
      const { failure } = await failed({ agent: SOLVE, runtime });
      expect(failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(failure?.message).to.contain('repo_dir').and.contain('nowhere');
    });

    it('refuses a configuration that submit would not have taken', async () => {
      const { failure } = await failed({ config: { test_comand: 'x', test_timeout: -1 } });
      expect(failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(failure?.message).to.contain('test_comand').and.to.contain('test_timeout');
    });

    it('reports an evaluation sandbox that cannot be prepared', async () => {
      const runtime = { evalPrepare: { steps: [exec('echo no; exit 7')] } };
      const { failure } = await failed({ agent: SOLVE, runtime });
      expect(failure).to.include({ reason: 'PREPARE_FAILED', infrastructure: false });
    });

    it('gives no reward where the budget was spent on other things', async () => {
      const runtime = { evalPrepare: { steps: [...PREPARE, exec('sleep 5')] } };
      const config = { test_command: 'sleep 60' };
      const { failure } = await failed({ agent: SOLVE, runtime, config, timeoutMs: 8_500 });
      expect(failure).to.include({ reason: 'EVALUATION_TIMEOUT', infrastructure: true });
    });

    it('gives no reward where the sandbox of the run is gone', async () => {
      const ref = newRef();
      const evaluator = { strategy: 'test_on_output', config: CONFIG };
      await node.work(ref, {
        case: 'evaluate',
        value: { runtimeId: 'rt-none', timeoutMs: 5_000n, evaluator },
      });
      const { kind } = await node.fact(ref);
      expect(kind.case === 'failed' && kind.value.failure).to.include({
        reason: 'RUNTIME_LOST',
        infrastructure: true,
      });
    });
  });

  it('refuses an evaluator that it does not have', async () => {
    const { failure } = await failed({ strategy: 'llm_judge', config: {} });
    expect(failure).to.include({ reason: 'UNKNOWN_EVALUATOR', infrastructure: false });
  });

  it('lists its evaluators', async () => {
    const client = createServiceClient(EvaluatorService, `http://127.0.0.1:${node.ports.evaluator}`);
    const { evaluators } = await client.listEvaluators({});
    expect(evaluators.map(({ name }) => name)).to.deep.equal([...EVALUATORS]);
  });

  it('that is killed has its evaluation done by the next one', async () => {
    const config = { test_command: `sleep 2; ${TEST}` };
    const solved = evaluated({ agent: "printf 'a = 1\\n' > a.py; echo new > new.txt", config });
    await eventually('it has a sandbox', async () => {
      const { runtimes } = await node.runtimes.listRuntimes({});
      return runtimes.some(({ owner }) => owner?.purpose === 'evaluate');
    });
    await node.end('evaluator', 'SIGKILL');
    await node.start('evaluator');
    expect((await solved).reward).to.equal(1);
    // The first one's sandbox has a lease of its own: the end of the attempt, or of the lease, removes it.
    const { runtimes } = await node.runtimes.listRuntimes({});
    for (const { runtimeId, owner } of runtimes) {
      if (owner?.purpose === 'evaluate') await node.runtimes.releaseRuntime({ runtimeId });
    }
  });
});
