// Everything that `npm test` checks, and one last line `N passed, N failed`. Each step counts as one test but mocha and
// pytest, whose own tests are counted.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, 'node_modules', '.bin');
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
const scratch = mkdtempSync(join(tmpdir(), 'polar-test-run-'));
const say = (text) => process.stdout.write(`${text}\n`);
const total = { passed: 0, failed: 0, skipped: 0 };

const run = (command, args) => spawnSync(command, args, { cwd: root, env, stdio: 'inherit' }).status === 0;

function step(name, command, ...args) {
  say(`\n== ${name}`);
  if (run(command, args)) total.passed++;
  else {
    total.failed++;
    say(`== ${name}: FAILED`);
  }
}

function mocha() {
  say('\n== mocha');
  const output = join(scratch, 'mocha.json');
  const reporters = [
    '--reporter',
    join(root, 'tools/mocha-reporter.cjs'),
    '--reporter-option',
    `output=${output}`,
  ];
  const passed = run('mocha', reporters);
  count(passed, () => {
    const { passes, failures, pending } = JSON.parse(readFileSync(output, 'utf8'));
    return { passed: passes, failed: failures, skipped: pending };
  });
}

function pytest() {
  say('\n== pytest');
  const output = join(scratch, 'pytest.xml');
  const passed = run(join(root, '.venv/bin/python'), [
    '-m',
    'pytest',
    '-q',
    '-rs',
    `--junitxml=${output}`,
    'clients/python/tests',
  ]);
  count(passed, () => {
    const xml = readFileSync(output, 'utf8');
    const of = (name) => Number(new RegExp(`<testsuite [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1] ?? 0);
    const failed = of('failures') + of('errors');
    return { passed: of('tests') - failed - of('skipped'), failed, skipped: of('skipped') };
  });
}

/** Add a runner's own counts; a runner that failed without saying what counts as one failure. */
function count(passed, read) {
  let counts = { passed: 0, failed: 0, skipped: 0 };
  try {
    counts = read();
  } catch (error) {
    say(`no result: ${error.message}`);
    counts.failed = 1;
  }
  if (!passed && counts.failed === 0) counts.failed = 1;
  for (const key of Object.keys(total)) total[key] += counts[key];
}

const only = process.argv.slice(2);
const wants = (name) => only.length === 0 || only.includes(name);
if (wants('lint')) {
  step('biome', 'biome', 'check', '.');
  step('buf lint', 'buf', 'lint');
  step('buf format', 'buf', 'format', 'proto', '--diff', '--exit-code');
  step('tsc', 'tsc', '-p', '.');
}
if (wants('gen')) {
  step('generated code', process.execPath, 'tools/generate.mjs', '--check');
  step('buf breaking', 'buf', 'breaking', 'proto', '--against', 'proto.image.binpb');
}
if (wants('mocha')) mocha();
if (wants('pytest')) pytest();
rmSync(scratch, { recursive: true, force: true });
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
say(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
