// What `npm test` makes of tests that fail, that fail once, and that leave something running.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import { pytestJob } from '../../tools/pytest-job.mjs';
import { mochaJob, runJobs } from '../../tools/test-jobs.mjs';
import { ROOT } from '../support/cli.ts';

const PYTHON = join(ROOT, '.venv/bin/python');

describe('the jobs of a test run', () => {
  let folder: string;
  let said: string[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-jobs-'));
    said = [];
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const PATH = [join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  const run = (jobs: readonly object[]) =>
    runJobs(jobs, {
      slots: 2,
      say: (text: string) => said.push(text),
      cwd: folder,
      env: { ...process.env, PATH },
    });
  const file = (name: string, ...lines: string[]): string => {
    const path = join(folder, name);
    writeFileSync(path, [`const fs = require('node:fs');`, ...lines].join('\n'));
    return path;
  };
  const FLAKY = [
    `const seen = fs.existsSync('seen');`,
    `fs.writeFileSync('seen', '');`,
    `describe('a', () => { it('flaky', () => { if (!seen) throw new Error('not yet'); }); it('good', () => {}); });`,
  ];

  it('runs a file whose test fails once more, and tells', async () => {
    const [result] = await run([mochaJob('flaky', [file('a.cjs', ...FLAKY)], { folder })]);
    expect(result).to.include({ name: 'flaky', passed: 2, failed: 0 });
    expect(result?.secondTry).to.deep.equal(['a › flaky']);
    expect(result?.report).to.contain('not yet');
    expect(said.join('\n')).to.contain('once more');
  });

  it('runs it when all others have ended, as a busy machine may be why it failed', async () => {
    const slow = file(
      'slow.cjs',
      `it('slow', (done) => setTimeout(() => fs.rmSync('busy') ?? done(), 700));`,
    );
    const test = `if (fs.existsSync('busy')) throw new Error('too late');`;
    const hasty = file('hasty.cjs', `fs.writeFileSync('busy', '');`, `it('hasty', () => { ${test} });`);
    const quiet = file('quiet.cjs', `it('hasty', () => { ${test} });`);
    const again = () => mochaJob('hasty', [quiet], { folder });
    const jobs = [{ ...mochaJob('hasty', [hasty], { folder }), again }, mochaJob('slow', [slow], { folder })];
    const results = await run(jobs);
    expect(results.map(({ failed }) => failed)).to.deep.equal([0, 0]);
    expect(results.flatMap((result) => result.secondTry)).to.deep.equal(['hasty']);
  });

  it('tries nothing again where so much fails that it is not chance', async () => {
    const failing = file('a.cjs', `it('broken', () => { throw new Error('so wrong'); });`);
    const jobs = Array.from({ length: 7 }, (_, i) => mochaJob(`broken ${i}`, [failing], { folder }));
    const results = await run(jobs);
    expect(results.map(({ failed }) => failed)).to.deep.equal(Array(7).fill(1));
    expect(said.join('\n')).to.not.contain('once more');
  });

  it('runs no other file once more, and counts each once', async () => {
    const other = [`fs.appendFileSync('ran', '.');`, `it('other', () => {}); it('later');`];
    const files = [file('a.cjs', ...FLAKY), file('b.cjs', ...other)];
    const [result] = await run([mochaJob('two', files, { folder })]);
    expect(result).to.include({ passed: 3, failed: 0, skipped: 1 });
    expect(result?.secondTry).to.deep.equal(['a › flaky']);
    expect(readFileSync(join(folder, 'ran'), 'utf8')).to.equal('.');
  });

  it('counts what fails twice as failed, with what mocha says of it', async () => {
    const path = file('a.cjs', `it('broken', () => { throw new Error('so wrong'); }); it('later');`);
    const [result] = await run([mochaJob('broken', [path], { folder })]);
    expect(result).to.include({ passed: 0, failed: 1, skipped: 1 });
    expect(result?.secondTry).to.deep.equal([]);
    expect(result?.report).to.contain('so wrong').and.contain('a.cjs');
  });

  it('runs a test of pytest that fails once more, and no other', async () => {
    const lines = [
      'import os, pytest',
      'def test_flaky():',
      '  seen = os.path.exists("seen"); open("seen", "w").close()',
      '  assert seen, "not yet"',
      'def test_good(): open("ran", "a").write(".")',
      '@pytest.mark.skip(reason="later")',
      'def test_later(): pass',
    ];
    writeFileSync(join(folder, 'test_a.py'), lines.join('\n'));
    const [result] = await run([pytestJob(PYTHON, ['test_a.py'], { folder })]);
    expect(result).to.include({ passed: 2, failed: 0, skipped: 1 });
    expect(result?.secondTry).to.deep.equal(['test_a › test_flaky']);
    expect(result?.report).to.contain('not yet');
    expect(readFileSync(join(folder, 'ran'), 'utf8')).to.equal('.');
  });

  it('counts what fails twice in pytest as failed, with what it says of it, and faults in its files', async () => {
    writeFileSync(
      join(folder, 'test_a.py'),
      'def test_broken(): assert False, "so wrong"\ndef test_good(): pass',
    );
    writeFileSync(join(folder, 'test_b.py'), 'import no_such_module');
    const [one] = await run([pytestJob(PYTHON, ['test_a.py'], { folder })]);
    expect(one).to.include({ passed: 1, failed: 1 });
    expect(one?.report).to.contain('so wrong');
    const [other] = await run([pytestJob(PYTHON, ['test_b.py'], { folder })]);
    expect(other).to.include({ passed: 0, failed: 1 });
    expect(other?.report).to.contain('no_such_module');
  });

  it('fails a file that does not end, though its tests pass, and does not try it again', async () => {
    const path = file('a.cjs', `it('leaves a timer', () => { setInterval(() => {}, 1000); });`);
    const [result] = await run([
      mochaJob('hangs', [path], { folder, args: ['--reporter-option', 'endMs=200'] }),
    ]);
    expect(result).to.include({ passed: 1, failed: 1 });
    expect(result?.report).to.match(/does not end: .*Timeout/);
    expect(said.join('\n')).to.not.contain('once more');
  });

  it('fails a job that leaves a process which holds its output, and one that does not run at all', async () => {
    const results = await run([
      { name: 'leaves', command: 'sh', args: ['-c', 'sleep 30 & echo $! > pid'] },
      { name: 'missing', command: 'no-such-program', args: [] },
      { name: 'good', command: 'true', args: [] },
      { name: 'bad', command: 'sh', args: ['-c', 'echo why; exit 3'] },
    ]);
    process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL');
    const of = (name: string) => results.find((result) => result.name === name);
    expect(of('leaves')).to.include({ passed: 0, failed: 1 });
    expect(of('leaves')?.report).to.contain('left a process running');
    expect(of('missing')).to.include({ failed: 1 });
    expect(of('good')).to.include({ passed: 1, failed: 0 });
    expect(of('bad')?.report).to.contain('ended with 3').and.contain('why');
  });
});
