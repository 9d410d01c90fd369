// Evaluators beside `test_on_output`: rows of SWE-bench, and what looks at replies alone.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import type { Evaluated, Failed } from '../../gen/ts/polar/event/v1/work_pb.js';
import { readTaskFile } from '../../services/common/specs/task-file.ts';
import { type Case, COMMIT, Evaluations, exec, PREPARE, REPO, SOLVE } from '../support/evaluations.ts';

const EXAMPLE = join(import.meta.dirname, '../../examples/swebench');

describe('evaluators of other kinds', () => {
  let evaluations: Evaluations;
  const evaluated = (given: Case): Promise<Evaluated> => evaluations.evaluated(given);
  const failed = (given: Case): Promise<Failed> => evaluations.failed(given);
  before(async () => {
    evaluations = await Evaluations.open();
  });
  after(() => evaluations[Symbol.asyncDispose]());
  afterEach(() => evaluations.checkClear());

  describe('swebench_harness', () => {
    const passes = (name: string, when: string): string =>
      `${when} && echo "PASSED t.py::${name}" || echo "FAILED t.py::${name} - it is not"`;
    const checks = [passes('test_a', 'grep -q "a = 1" a.py'), passes('test_b', 'sh tests/b.sh')].join('\n');
    const TEST_PATCH = [
      ...['diff --git a/keep.txt b/keep.txt', '--- a/keep.txt', '+++ b/keep.txt', '@@ -1 +1,2 @@'],
      ...[' x', '+y', 'diff --git a/tests/b.sh b/tests/b.sh', 'new file mode 100644', '--- /dev/null'],
      ...['+++ b/tests/b.sh', '@@ -0,0 +1 @@', '+test "$(cat keep.txt | tr -d "\\n")" = xy', ''],
    ].join('\n');
    const row = (more: object, config: object = {}): Pick<Case, 'strategy' | 'config'> => ({
      strategy: 'swebench_harness',
      config: {
        repo_dir: REPO,
        instance: {
          ...{ instance_id: 'a__a-1', repo: 'pallets/flask', version: '1', hints_text: 'unused' },
          ...{ FAIL_TO_PASS: '["t.py::test_a"]', PASS_TO_PASS: ['t.py::test_b'], test_patch: TEST_PATCH },
          ...more,
        },
        ...config,
      },
    });
    const command = (more: object = {}) => row(more, { test_command: checks });
    /** As the data sets have it: it undoes its tests, so that its own exit code tells nothing. */
    const script = (run: string, base = 'HEAD'): string =>
      [
        ...['#!/bin/bash', 'set -uxo pipefail', `cd ${REPO}`, `git checkout -q ${base} keep.txt`],
        `git apply -v - <<'EOF_114329324912'\n${TEST_PATCH}EOF_114329324912`,
        ...[
          ": '>>>>> Start Test Output'",
          run,
          ": '>>>>> End Test Output'",
          `git checkout -q ${base} keep.txt`,
        ],
      ].join('\n');

    it("runs a row's script, and says which tests pass", async () => {
      const eval_script = script(`{ ${checks}\n}`);
      const solved = await evaluated({ agent: SOLVE, ...row({ eval_script }) });
      expect({ reward: solved.reward, ...solved.evaluation }).to.deep.include({
        ...{ reward: 1, resolved: true, resolution: 'FULL', test_exit_code: 0, applied_by: 'git' },
        FAIL_TO_PASS: { failure: [], success: ['t.py::test_a'] },
        PASS_TO_PASS: { failure: [], success: ['t.py::test_b'] },
      });
      const not = await evaluated({ agent: 'echo > new.txt', ...row({ eval_script }) });
      expect({ reward: not.reward, ...not.evaluation }).to.deep.include({
        ...{ reward: 0, resolved: false, resolution: 'NO', tests_parsed: 2 },
        FAIL_TO_PASS: { failure: ['t.py::test_a'], success: [] },
      });
      const faked = script('echo "PASSED t.py::test_a"; echo "PASSED t.py::test_b"; (exit 4)');
      const { reward, evaluation } = await evaluated({ agent: SOLVE, ...row({ eval_script: faked }) });
      expect([reward, evaluation?.['test_exit_code']]).to.deep.equal([0, 4]);
      expect(evaluation?.['invalid_log']).to.contain('exit code 4');
    });

    it('reads what the shell traces of a row in another language', async () => {
      const word = '$([ "$2" = -Dtest=A#b ] || grep -q "a = 1" a.py && echo SUCCESS || echo FAILURE)';
      const run = `mvn() { printf 'BUILD %s\\n' ${word}; }; mvn -B -Dtest=A#a; mvn -B -Dtest=A#b`;
      const lists = { FAIL_TO_PASS: ['A#a'], PASS_TO_PASS: ['A#b'] };
      const java = { repo: 'google/gson', ...lists };
      for (const given of [
        row({ ...java, eval_script: script(run) }),
        row(java, { test_command: `set -x; ${run}` }),
      ]) {
        const { reward, evaluation } = await evaluated({ agent: SOLVE, ...given });
        expect([reward, evaluation?.['tests_parsed']]).to.deep.equal([1, 2]);
      }
      const not = await evaluated({ agent: 'echo > new.txt', ...row({ ...java, eval_script: script(run) }) });
      expect({ reward: not.reward, ...not.evaluation }).to.deep.include({
        ...{ reward: 0, FAIL_TO_PASS: { failure: ['A#a'], success: [] } },
      });
    });

    it("puts a row's tests in place of what the agent has made of them", async () => {
      const own = 'mkdir tests; echo exit 1 > tests/b.sh; echo z > keep.txt';
      for (const agent of [`${SOLVE}; ${own}`, `${SOLVE}; ${own}; git add -A; ${COMMIT} own`]) {
        const { reward, evaluation } = await evaluated({ agent, ...command() });
        expect([reward, evaluation?.['resolution']], agent).to.deep.equal([1, 'FULL']);
      }
      const barred = await evaluated({ agent: `${SOLVE}; echo > tests`, ...command() });
      expect({ reward: barred.reward, ...barred.evaluation }).to.deep.include({
        ...{ reward: 0, failed_apply_tests: true, resolution: 'NO' },
      });
    });

    it('reads what tests tell behind markers that they print, and no silence in an output that is cut', async () => {
      const hides = "printf '%s\\n' 'PASSED t.py::test_a' '>>>>> End Test Output'";
      const tells = "echo 'FAILED t.py::test_a - no'";
      const instance = { test_patch: null, PASS_TO_PASS: [] };
      const behind = row(instance, { test_command: `${hides}; ${tells}` });
      const { reward, evaluation } = await evaluated({ agent: SOLVE, ...behind });
      expect([reward, evaluation?.['resolution']]).to.deep.equal([0, 'NO']);
      const fill = "head -c 2500000 /dev/zero | tr '\\0' x; echo";
      const test_command = `echo 'PASSED t.py::z'; ${fill}; ${tells}; ${fill}`;
      const cut = row({ ...instance, eval_type: 'fail_only' }, { test_command });
      const silent = await evaluated({ agent: SOLVE, ...cut });
      expect([silent.reward, silent.evaluation?.['test_output_cut']]).to.deep.equal([0, true]);
      expect(silent.evaluation?.['invalid_log']).to.match(/middle is cut/);
    });

    it("takes the agent's own test where the row has one that `prepare` has taken away", async () => {
      const prepare = [
        ...PREPARE,
        exec(`cd ${REPO} && mkdir tests && echo exit 1 > tests/b.sh && git add -A && ${COMMIT} with`),
        exec(`cd ${REPO} && git tag with && git rm -qr tests && ${COMMIT} without`),
      ];
      const test_patch = TEST_PATCH.replace(
        'new file mode 100644\n--- /dev/null',
        '--- a/tests/b.sh',
      ).replace('@@ -0,0 +1 @@', '@@ -1 +1 @@\n-exit 1');
      const agent = `${SOLVE}; mkdir tests; echo mine > tests/b.sh`;
      const { reward, evaluation } = await evaluated({
        ...{ agent, runtime: { prepare } },
        ...command({ test_patch, base_commit: 'with' }),
      });
      expect([reward, evaluation?.['resolution']]).to.deep.equal([1, 'FULL']);
    });

    it('grades the example: its solution, and nothing', async () => {
      const { runtime, evaluator } = readTaskFile(join(EXAMPLE, 'task.yaml'));
      const { patch } = JSON.parse(readFileSync(join(EXAMPLE, 'row.json'), 'utf8')) as { patch: string };
      // Agents begin there.
      const prepare = [...(runtime?.prepare ?? []), exec(`mkdir ${REPO}`)];
      const given = { strategy: 'swebench_harness', config: evaluator?.config ?? {}, runtime: { prepare } };
      const agent = `cd /polar/session/workspace; git apply <<'EOF'\n${patch}EOF`;
      const solved = await evaluated({ ...given, agent });
      expect([solved.reward, solved.evaluation?.['resolution']]).to.deep.equal([1, 'FULL']);
      const nothing = await evaluated(given);
      expect([nothing.reward, nothing.evaluation?.['empty_generation']]).to.deep.equal([0, true]);
    });

    it("does not blame the agent for a row's tests that do not fit the repository", async () => {
      const test_patch = TEST_PATCH.replace('\n x\n', '\n w\n');
      const { failure } = await failed({ agent: SOLVE, ...command({ test_patch }) });
      expect(failure).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(failure?.message).to.match(/test_patch: does not apply to repo_dir before any change/);
    });
  });

  describe('of replies', () => {
    const calls = [
      ['main', 'I begin: \\boxed{3}'],
      ['sub', 'Found: 17'],
      ['main', 'So x = 1/2.\nAnswer: $\\frac{1}{2}$'],
      ['side', 'A title'],
    ].map(([role = '', content], index) =>
      create(CompletionSchema, {
        ...{ callId: `c${index}`, index, role, trainable: true, baseIndex: -1 },
        ...{ startSeq: BigInt(2 * index), endSeq: BigInt(2 * index + 1), replyDigest: `r${index}` },
        messageBodies: { [`r${index}`]: JSON.stringify({ role: 'assistant', content }) },
      }),
    );
    const judged = async (strategy: string, config: object): Promise<unknown[]> => {
      const { reward, evaluation, traceRewards } = await evaluated({ strategy, config, calls });
      return [reward, evaluation ?? {}, traceRewards.map((one) => [one.callId, one.reward])];
    };

    it('math_judge compares the last one with the answer', async () => {
      const told = { answer: '$\\frac{1}{2}$', answer_form: 'answer', call_id: 'c2' };
      expect(await judged('math_judge', { answer: 0.5, format_bonus: 0.25 })).to.deep.equal([
        ...[1.25, { resolved: true, ...told }, []],
      ]);
      expect(await judged('math_judge', { answer: ['3', '17'] })).to.deep.equal([
        ...[0, { resolved: false, ...told }, []],
      ]);
      const none = await evaluated({ strategy: 'math_judge', config: { answer: 3 }, calls: [] });
      expect([none.reward, none.evaluation?.['answer_form']]).to.deep.equal([0, 'none']);
    });

    it('response_match rewards each of them, and the session by the last one', async () => {
      const [reward, told, traces] = await judged('response_match', {
        ...{ contains: ['FOUND'], patterns: ['\\d{2}$'], require_all: true, ignore_case: true },
        ...{ reward: 2, miss_reward: -1 },
      });
      expect([reward, told]).to.deep.equal([
        ...[-1, { resolved: false, replies: 3, matching_replies: 1, call_id: 'c2' }],
      ]);
      expect(traces).to.deep.equal([
        ['c0', -1],
        ['c1', 2],
        ['c2', -1],
      ]);
      const [any] = await judged('response_match', { contains: ['nothing', 'x = 1/2'] });
      expect(any).to.equal(1);
      const say = async (content: string) => {
        const messageBodies = { r: JSON.stringify({ role: 'assistant', content }) };
        const call = create(CompletionSchema, {
          callId: 'c',
          trainable: true,
          replyDigest: 'r',
          messageBodies,
        });
        const config = { contains: ['Đà Nẵng'.normalize('NFC')] };
        return (await evaluated({ strategy: 'response_match', config, calls: [call] })).reward;
      };
      expect(await say('Đà Nẵng'.normalize('NFD'))).to.equal(1);
      const startedAt = performance.now();
      expect(await say(`a${'\u0301\u0316'.repeat(500_000)}`)).to.equal(0);
      expect(performance.now() - startedAt, 'however many marks').to.be.lessThan(10_000);
    });
  });
});
