// What an agent does to its grading: to the files that tests come from, and to the time that reading its changes takes.
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
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
  before(async () => {
    evaluations = await Evaluations.open();
  });
  after(async () => {
    await evaluations.checkClear();
    await evaluations[Symbol.asyncDispose]();
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
    const { reward, evaluation } = await evaluations.evaluated({ agent, config: { apply_timeout: 3 } });
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
});
