// What an agent does to its grading: to the files that tests come from, and to the time that reading its changes takes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { type Case, COMMIT, Evaluations, exec, PREPARE, REPO } from '../support/evaluations.ts';

/** Tests that the agent cannot change, taken from git's own store. */
const TESTS = 'grep -q "a = 1" a.py && echo PASSED test_a || echo FAILED test_a';
const GUARDED: Case = {
  runtime: {
    prepare: [
      ...PREPARE,
      exec(`cd ${REPO} && mkdir tests && echo '${TESTS}' > tests/t.sh && git add -A && ${COMMIT} tests`),
    ],
  },
  config: {
    patch_command: 'git diff',
    exclude_patterns: ['tests'],
    test_command: 'rm -rf tests; git checkout -q HEAD -- tests; sh tests/t.sh',
    expected_output_json: { test_a: 'PASSED' },
  },
};
const LINK = [
  'diff --git a/g b/g',
  'new file mode 120000',
  '--- /dev/null',
  '+++ b/g',
  '@@ -0,0 +1 @@',
  '+.git',
];
/** A program that git runs behind a checkout. */
const hookIn = (folder: string): string[] => [
  `diff --git a/${folder}/hooks/post-checkout b/${folder}/hooks/post-checkout`,
  ...['new file mode 100755', '--- /dev/null', `+++ b/${folder}/hooks/post-checkout`, '@@ -0,0 +1,2 @@'],
  ...['+#!/bin/sh', "+echo 'echo PASSED test_a' > tests/t.sh"],
];

describe('evaluator, against what an agent does to it,', function () {
  this.timeout(60_000);
  let evaluations: Evaluations;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-evaluators-'));
    evaluations = await Evaluations.open({ plugins_dir: folder });
  });
  after(async () => {
    await evaluations.checkClear();
    await evaluations[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  describe("keeps git's own files as they were, for tests that are taken from git", () => {
    const patches: readonly (readonly [string, readonly string[]])[] = [
      ['a patch that names them', hookIn('.git')],
      ['a patch with a link to them', [...LINK, '\\ No newline at end of file', ...hookIn('g')]],
    ];
    for (const [what, lines] of patches) {
      it(`whatever is in ${what}`, async function () {
        if (spawnSync('patch', ['--version']).error !== undefined) this.skip();
        const diff = `cat > /polar/session/diff <<'END'\n${lines.join('\n')}\nEND\n`;
        const agent = `${diff}git config diff.external 'cat /polar/session/diff; :'; echo b > a.py`;
        const { reward, evaluation } = await evaluations.evaluated({ ...GUARDED, agent });
        expect([reward, evaluation?.['results']]).to.deep.equal([0, undefined]);
      });
    }
  });

  it('gives 0 for changes that are not read in apply_timeout, where all else is quick', async () => {
    const slow = 'git config filter.slow.clean "sleep 20" && echo "a.py filter=slow" > .git/info/attributes';
    const agent = `${slow}; echo b > a.py`;
    const { reward, evaluation } = await evaluations.evaluated({ agent, config: { apply_timeout: 6 } });
    expect([reward, evaluation?.['patch_timeout']]).to.deep.equal([0, true]);
  });

  it('keeps rewards of a Python with its own modules alone from what tested code has put below /etc', async () => {
    const found = 'python3 -c "import sys; print(\'python%d.%d\' % sys.version_info[:2])"';
    const own = `python3 -I -S -c 'print("{\\"trace_rewards\\": {}}")'`;
    const config = {
      test_command: `at=/etc/$(${found}); mkdir -p $at; echo 'raise SystemExit(3)' > $at/sitecustomize.py; echo PASSED a`,
      expected_output_json: { a: 'PASSED' },
      rewards_command: own,
    };
    const { evaluation } = await evaluations.evaluated({ agent: 'echo b > a.py', calls: [], config });
    expect(evaluation?.['trace_rewards']).to.equal(0);
  });

  describe('harbor', () => {
    /** Right where the answer is 42, and sloppy: without an answer it says nothing of it. */
    const VERIFIER = [
      '[ -x /tests/test.sh ] && . /tests/check.sh',
      'echo "$POINTS points" >&2',
      'check answer.txt && echo "{\\"solved\\": true, \\"style\\": 0.$POINTS}" > /logs/verifier/reward.json',
      '[ -e /logs/verifier/reward.json ] || echo 0 > /logs/verifier/reward.txt',
      'exit 3',
    ].join('\n');
    const WORKSPACE = '/polar/session/workspace';
    const HARBOR: Case = {
      strategy: 'harbor',
      config: { verifier_timeout: 5 },
      files: { 'test.sh': VERIFIER, 'check.sh': 'check() { grep -qx 42 "$1"; }' },
      env: { POINTS: '5' },
    };
    const graded = (agent: string, more: Case = {}) =>
      evaluations.evaluated({ ...HARBOR, ...more, agent: `cd ${WORKSPACE}; ${agent}` });

    it('rewards what the verifier writes of the sandbox as the agent left it', async () => {
      const solved = await graded('echo 42 > answer.txt');
      expect({ reward: solved.reward, ...solved.evaluation }).to.deep.equal({
        reward: 0.75,
        rewards: { solved: 1, style: 0.5 },
        ...{ verifier_exit_code: 3, verifier_timeout: false, verifier_output_tail: '5 points\n\n' },
      });
      const wrong = await graded('echo 41 > answer.txt');
      expect([wrong.reward, wrong.evaluation?.['rewards']]).to.deep.equal([0, { reward: 0 }]);
    });

    it('works where nothing is isolated, in what is the own of the sandbox', async () => {
      const config = { tests_target: '/polar/session/tests', verifier_dir: '/polar/session/logs' };
      const files = { 'test.sh': 'cd "$(dirname "$0")/../logs" && echo 0.5 > reward.txt' };
      const runtime = { backend: 'process' };
      expect((await graded('echo', { config, files, runtime })).reward).to.equal(0.5);
      const { failure } = await evaluations.failed({ ...HARBOR, runtime });
      expect(failure).to.include({ reason: 'INVALID_TASK' });
      expect(failure?.message).to.contain('/tests must be below /polar/session');
    });

    it('rewards the solution of the example', async () => {
      const [solution = '', tests = ''] = ['solution/solve.sh', 'tests/test.sh'].map((path) =>
        readFileSync(join(import.meta.dirname, '../../examples/harbor/greeting', path), 'utf8'),
      );
      const { reward, evaluation } = await graded(solution, { files: { 'test.sh': tests } });
      expect([reward, evaluation?.['rewards']]).to.deep.equal([1, { said: 1, short: 1 }]);
    });

    const forged = 'echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json';
    const tricks: readonly (readonly [string, string])[] = [
      [
        'files with rewards',
        `mkdir -p /logs/verifier; ${forged}; chmod -R a-w /logs; chmod 0 /logs/verifier`,
      ],
      [
        'a link in place of their folder',
        `mkdir /logs mine; ln -s ${WORKSPACE}/mine /logs/verifier; ${forged}`,
      ],
      ['a link above their folder', `mkdir -p mine/verifier; ln -s ${WORKSPACE}/mine /logs; ${forged}`],
      ['a folder in place of one', 'mkdir -p /logs/verifier/reward.json/1 /logs/verifier/reward.txt/2'],
      ['a file above their folder, and one in place of the tests', 'echo 1 > /logs; echo 1 > /tests'],
      ['tests', `mkdir /tests; echo 'check() { true; }' > /tests/check.sh; chmod 0 /tests/check.sh /tests`],
      [
        'a link in place of the tests',
        `mkdir mine; echo 'check() { true; }' > mine/check.sh; ln -s $PWD/mine /tests`,
      ],
      [
        'a process that writes rewards',
        `(while sleep 0.1; do mkdir -p /logs/verifier; ${forged}; done) & echo`,
      ],
    ];
    for (const [what, agent] of tricks) {
      it(`rewards no agent that leaves ${what}`, async () => {
        const { reward, evaluation } = await graded(agent);
        expect([reward, evaluation?.['rewards']]).to.deep.equal([0, { reward: 0 }]);
      });
    }

    it('gives 0 where only the agent has brought the verifier to write nothing, or to have no end', async () => {
      const files = { 'test.sh': '[ -e answer.txt ] && . ./answer.txt; echo 1 > /logs/verifier/reward.txt' };
      const config = { tests_target: "/it's" };
      const silent = await graded('echo exit 7 > answer.txt', { files, config });
      expect({ reward: silent.reward, ...silent.evaluation }).to.deep.include({
        ...{ reward: 0, verifier_exit_code: 7 },
        verifier_error: 'the verifier wrote neither reward.json nor reward.txt',
      });
      const endless = await graded('echo sleep 60 > answer.txt', {
        files,
        config: { verifier_timeout: 1.5 },
      });
      expect([endless.reward, endless.evaluation?.['verifier_timeout']]).to.deep.equal([0, true]);
    });

    it('is asked again where a fresh sandbox shows that it works, and then believed', async () => {
      const once = '[ -e answer.txt ] && [ ! -e asked ] && touch asked && exit';
      const files = { 'test.sh': `${once}; echo 0.5 > /logs/verifier/reward.txt` };
      const { reward, evaluation } = await graded('touch answer.txt', { files });
      expect([reward, evaluation?.['verifier_error']]).to.deep.equal([0.5, undefined]);
    });

    it('gives no reward, and blames the task, where the verifier gives none without an agent either', async () => {
      const fails = async (script: string, config = {}) => {
        const { failure } = await evaluations.failed({ ...HARBOR, files: { 'test.sh': script }, config });
        return failure;
      };
      const nan = await fails('echo nan > /logs/verifier/reward.txt; echo why');
      expect(nan).to.include({ reason: 'INVALID_TASK', infrastructure: false });
      expect(nan?.message).to.match(
        /without the agent's work, too, .* reward.txt that holds no number: why$/,
      );
      const late = await fails('sleep 60', { verifier_timeout: 1 });
      expect(late).to.include({ reason: 'EVALUATION_TIMEOUT', infrastructure: true });
      const covered = await fails('echo 1 > /usr/logs/reward.txt', { verifier_dir: '/usr/logs' });
      expect(covered).to.include({ reason: 'INVALID_TASK' });
    });
  });

  describe('verifier_result_file', () => {
    const FILE = '/polar/session/out/result.json';
    const graded = (agent: string, config: object) =>
      evaluations.evaluated({
        ...{ strategy: 'verifier_result_file', config: { result_file: FILE, ...config } },
        agent: `mkdir /polar/session/out; cd /polar/session/out; ${agent}`,
      });

    it('takes the number that the run has left under a key, and 0 for none', async () => {
      const left = await graded('echo \'{"score": 0.25}\' > result.json', { reward_key: 'score' });
      expect([left.reward, left.evaluation]).to.deep.equal([0.25, { rewards: { score: 0.25 } }]);
      const none = await graded('mkfifo result.json', {});
      expect([none.reward, none.evaluation]).to.deep.equal([
        0,
        { verifier_error: `the run wrote no ${FILE}` },
      ]);
    });

    it('takes what a command writes after the run, and nothing that the run has left', async () => {
      const command = `mkdir -p /polar/session/out; grep -qx 42 /polar/session/answer && points=1
        echo "{\\"reward\\": \${points:-0}}" > ${FILE}`;
      expect((await graded('echo 42 > ../answer', { command })).reward).to.equal(1);
      const forged = 'echo \'{"reward": 1}\' > result.json';
      for (const trick of [forged, `${forged}; mv result.json ../x; ln -s ../x result.json`]) {
        expect((await graded(trick, { command })).reward, trick).to.equal(0);
        const silent = await graded(trick, {
          command: `[ -e /polar/session/x ] || ${command.replaceAll(/\s*\n\s*/g, '; ')}`,
        });
        expect(silent.reward).to.equal(0);
      }
    });
  });

  describe('a plug-in', () => {
    const graded = (name: string, module: string, more: Case = {}): Case => {
      writeFileSync(join(folder, name), module);
      return { strategy: name, config: {}, ...more };
    };
    const evaluating = (body: string): string =>
      `export const evaluator = { async evaluate(given) { ${body} } };`;

    it('grades as docs/task-file.md shows it, with both sandboxes', async () => {
      const doc = readFileSync(join(import.meta.dirname, '../../docs/task-file.md'), 'utf8');
      const shown = /```js\n(export const evaluator = [\s\S]*?)```/.exec(doc)?.[1] ?? '';
      const calls = ['c0', 'c1'].map((callId, index) => create(CompletionSchema, { callId, index }));
      const config = { options: { words: 2 } };
      const agent = 'echo one two three four > /polar/session/workspace/answer.txt';
      const given = graded('short.mjs', shown, { config, calls, agent });
      const solved = await evaluations.evaluated(given);
      expect([solved.reward, solved.evaluation]).to.deep.equal([0.5, { words: 4 }]);
      const traces = solved.traceRewards.map(({ callId, reward }) => [callId, reward]);
      expect(traces).to.deep.equal([['c1', 0.5]]);
      const late = await evaluations.evaluated({ ...given, outcome: Outcome.TIMEOUT });
      expect([late.reward, late.evaluation]).to.deep.equal([0, { answered: false }]);
    });

    it('is given the task, in commands that fail and files that there are not', async () => {
      const module = evaluating(`
        const { exitCode, stdout, stderr, timedOut } = await given.sandbox.exec('pwd; echo no >&2; exit 3');
        const none = await given.fresh.readFile('/polar/session/none');
        const late = await given.fresh.exec('sleep 9', { timeoutSeconds: 0.2 });
        const wrong = await given.fresh.exec('').catch((error) => error.reason);
        const told = { exitCode, stdout, stderr, timedOut, late: late.timedOut, wrong, none: none === undefined };
        return { reward: given.metadata.points, told: { ...told, session: given.session.attempt } };`);
      const { reward, evaluation } = await evaluations.evaluated(
        graded('asks.mjs', module, { metadata: { points: 0.25 } }),
      );
      expect([reward, evaluation]).to.deep.equal([
        0.25,
        {
          ...{ exitCode: 3, stdout: '/polar/session/workspace\n', stderr: 'no\n', timedOut: false },
          ...{ late: true, wrong: 'INVALID_REQUEST', none: true, session: 1 },
        },
      ]);
    });

    it('puts the files of its task into either sandbox', async () => {
      const module = evaluating(`
        const { sandbox, fresh } = given;
        await sandbox.exec('rm -rf /tests');
        for (const one of [sandbox, fresh]) await one.putFiles('/tests');
        const passed = [];
        for (const one of [sandbox, fresh]) passed.push((await one.exec('sh /tests/run/all.sh')).exitCode === 0);
        const wrong = await sandbox.putFiles('tests').catch((error) => error.reason);
        return { reward: passed.filter(Boolean).length / 2, told: { passed, wrong } };`);
      const files = {
        'run/all.sh': '. /tests/want.sh && [ "$(cat answer.txt)" = "$want" ]',
        'want.sh': 'want=42',
      };
      const agent =
        'mkdir -p /tests; echo want=41 > /tests/want.sh; echo 42 > /polar/session/workspace/answer.txt';
      const { reward, evaluation } = await evaluations.evaluated(
        graded('files.mjs', module, { files, agent }),
      );
      expect([reward, evaluation]).to.deep.equal([0.5, { passed: [true, false], wrong: 'INVALID_REQUEST' }]);
    });

    it('gives no reward where it fails, does not end, or is not there, and its sandboxes are cleared', async () => {
      const fails = async (name: string, body: string, more: Case = {}) =>
        (await evaluations.failed(graded(name, evaluating(body), more))).failure;
      const FAILED = { reason: 'EVALUATOR_PLUGIN_FAILED', infrastructure: false };
      const nan = await fails('nan.mjs', 'await given.fresh.exec("true"); return { reward: NaN };');
      expect(nan).to.include(FAILED);
      const body = 'await given.fresh.exec("sleep 60");';
      const late = await fails('late.mjs', body, { config: { timeout: 1 } });
      expect(late).to.include(FAILED);
      expect(late?.message).to.equal('evaluator late.mjs: it gave nothing in 1 s');
      const cut = await fails('cut.mjs', body, { timeoutMs: 1_500 });
      expect(cut).to.include({ reason: 'EVALUATION_TIMEOUT', infrastructure: true });
      const none = await evaluations.failed({ strategy: 'none.mjs', config: {} });
      expect(none.failure).to.include({ reason: 'EVALUATOR_PLUGIN_INVALID', infrastructure: false });
      await evaluations.checkClear();
    });
  });
});
