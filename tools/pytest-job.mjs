// pytest as a job of a test run (`test-jobs.mjs`).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const CASE = /<testcase classname="([^"]*)" name="([^"]*)"[^>]*>\s*<(failure|error)\b/g;

/**
 * pytest over some places; what it remembers, and its result, pass through `folder`. Tests that failed are run once more.
 * @param {string} python
 * @param {string[]} places
 * @param {{ folder: string, again?: boolean }} options
 */
export function pytestJob(python, places, { folder, again = false }) {
  const output = join(folder, again ? 'pytest-again.xml' : 'pytest.xml');
  const remembered = ['-o', `cache_dir=${join(folder, 'pytest')}`, ...(again ? ['--lf', '--lfnf=none'] : [])];
  const args = ['-m', 'pytest', '-q', '-rs', `--junitxml=${output}`, ...remembered, ...places];
  const read = () => resultOf(readFileSync(output, 'utf8'));
  const second = () => pytestJob(python, places, { folder, again: true });
  return { name: 'pytest', command: python, args, read, again: second };
}

function resultOf(xml) {
  const of = (name) => Number(new RegExp(`<testsuite [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1] ?? 0);
  const failed = of('failures') + of('errors');
  const skipped = of('skipped');
  const passed = of('tests') - failed - skipped;
  const titles = [...xml.matchAll(CASE)].map(([, place, name]) => `${place} › ${name}`);
  return { passed, failed, skipped, titles, others: { passed, skipped } };
}
