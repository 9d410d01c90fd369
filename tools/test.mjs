// Everything that `npm test` checks, several jobs at a time, and one last line `N passed, N failed`. Each job counts as
// one test but those of mocha and pytest, whose own tests are counted.
//   node tools/test.mjs [lint] [gen] [mocha] [pytest]
// Each file below ALONE has a mocha of its own, and those below FEW share one with a few others: each mocha loads the
// services anew, which takes a second of CPU. Processes, sockets and timers are real, so that a machine which stands still
// can fail a test: a file of mocha's with a failed test is run once more when all else has ended, a failed test of pytest's,
// too, and what passes only then is told at the end.
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pytestJob } from './pytest-job.mjs';
import { mochaJob, runJobs } from './test-jobs.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, 'node_modules', '.bin');
const scratch = mkdtempSync(join(tmpdir(), 'polar-test-run-'));
const env = {
  ...process.env,
  PATH: `${bin}${delimiter}${process.env.PATH}`,
  NODE_COMPILE_CACHE: join(root, '.cache/compiled'),
};
/** More than cores: tests wait half of their time. */
const slots = Number(process.env.POLAR_TEST_JOBS ?? 2 * availableParallelism() + 1);
/** What takes longest comes first; the rest fills what they leave at the end. */
const ALONE = [
  ...['test/chaos/', 'test/consumers/', 'test/e2e/', 'test/conformance/'],
  ...['test/integration/runtime-prewarm-docker', 'test/integration/runtime-prewarm-engine-killed'],
];
const FEW = 'test/integration/';
/** Those of them that take longest. */
const FEW_LONG = 'test/integration/runtime-prewarm';
const FEW_FILES = 5;

const say = (text) => process.stdout.write(`${text}\n`);
const job = (name, command, ...args) => ({ name, command, args });

function mochas() {
  const files = globSync('{services,clients,examples,test}/**/*.test.ts', { cwd: root }).sort();
  const alone = ALONE.flatMap((place) => files.filter((file) => file.startsWith(place)));
  const others = files.filter((file) => file.startsWith(FEW) && !alone.includes(file));
  const few = [
    ...others.filter((file) => file.startsWith(FEW_LONG)),
    ...others.filter((file) => !file.startsWith(FEW_LONG)),
  ];
  const together = Object.groupBy(
    files.filter((file) => !alone.includes(file) && !few.includes(file)),
    (file) => file.split('/')[0],
  );
  return [
    ...Object.entries(together).map(([place, those]) =>
      mochaJob(`unit tests of ${place}`, those, { folder: scratch }),
    ),
    ...alone.map((file) => mochaJob(file, [file], { folder: scratch })),
    ...inFew(few).map((those) =>
      mochaJob(`${those[0]} to ${basename(those.at(-1))}`, those, { folder: scratch }),
    ),
  ];
}

const inFew = (files) =>
  Array.from({ length: Math.ceil(files.length / FEW_FILES) }, (_, i) =>
    files.slice(i * FEW_FILES, (i + 1) * FEW_FILES),
  );

const JOBS = {
  // Long, and one job, as unit tests are: begun last, it would run alone.
  pytest: () => [pytestJob(join(root, '.venv/bin/python'), ['clients/python/tests'], { folder: scratch })],
  mocha: mochas,
  lint: () => [
    job('biome', 'biome', 'check', '.'),
    job('buf lint', 'buf', 'lint'),
    job('buf format', 'buf', 'format', 'proto', '--diff', '--exit-code'),
    job('tsc', 'tsc', '-p', '.'),
    job('ruff', join(root, '.venv/bin/python'), '-m', 'ruff', 'check', '--quiet', '.'),
    job(
      'mypy',
      join(root, '.venv/bin/python'),
      '-m',
      'mypy',
      '--config-file',
      'clients/python/pyproject.toml',
    ),
  ],
  gen: () => [
    job('generated code', process.execPath, 'tools/generate.mjs', '--check'),
    job('buf breaking', 'buf', 'breaking', 'proto', '--against', 'proto.image.binpb'),
  ],
};

const only = process.argv.slice(2);
const wanted = Object.keys(JOBS).filter((name) => only.length === 0 || only.includes(name));
const results = await runJobs(
  wanted.flatMap((name) => JOBS[name]()),
  { slots, say, cwd: root, env },
);
rmSync(scratch, { recursive: true, force: true });

for (const { name, failed, report } of results) if (failed > 0) say(`\n== FAILED: ${name}\n${report}`);
for (const { name, secondTry, report } of results) {
  if (secondTry.length === 0) continue;
  say(`\n== passed at the second try: ${name}`);
  for (const title of secondTry) say(`  ${title}`);
  say(report);
}
const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
const skipped = total('skipped') > 0 ? `, ${total('skipped')} skipped` : '';
say(`\n${total('passed')} passed, ${total('failed')} failed${skipped}`);
process.exitCode = total('failed') === 0 && total('passed') > 0 ? 0 : 1;
