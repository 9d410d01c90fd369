// What the recorded outputs of go, cargo, jest and unittest do not show.
import { expect } from 'chai';
import type { TestFormat } from '../../common/specs/catalogue.ts';
import { readResults } from './test-formats.ts';

const read = (format: TestFormat, ...lines: string[]): object =>
  Object.fromEntries(readResults(format, { stdout: lines.join('\n'), stderr: '' }, {}));

describe('the format go', () => {
  const event = (Action: string, Test?: string, Package = 'p'): string =>
    JSON.stringify({ Action, Package, Test });

  it('counts the worst of tests that have one name, in any package', () => {
    const other = [event('run', 'TestA', 'q'), event('fail', 'TestA', 'q'), event('fail', undefined, 'q')];
    const lines = [event('run', 'TestA'), ...other, event('pass', 'TestA'), event('pass')];
    expect(read('go', ...lines)).to.deep.equal({ TestA: 'FAILED' });
  });

  it('has an ERROR for what has begun and not ended, but no benchmark', () => {
    const lines = [event('run', 'TestA'), event('run', 'BenchmarkA'), event('pass', 'TestA').slice(0, -1)];
    expect(read('go', ...lines)).to.deep.equal({ TestA: 'ERROR' });
    expect(read('go', ...lines, event('pass'))).to.deep.equal({ TestA: 'ERROR' });
    expect(read('go', event('constructor', 'TestA'), event('pass', 'TestB'))).to.deep.equal({
      TestB: 'PASSED',
    });
  });

  it('reads what is printed without -v', () => {
    const lines = [
      '--- FAIL: TestA (0.01s)',
      'FAIL',
      'FAIL\tp\t0.01s',
      'ok  \tq\t(cached)',
      'FAIL\tr [setup failed]',
    ];
    expect(read('go', ...lines)).to.deep.equal({ TestA: 'FAILED', r: 'ERROR' });
  });
});

describe('the format cargo', () => {
  const ok = 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s';

  it('reads results between `running` and a summary with the same numbers', () => {
    expect(
      read('cargo', 'test a ... ok', 'running 1 test', 'test b ... ok', '', ok, 'test c ... ok'),
    ).to.deep.equal({
      b: 'PASSED',
    });
    const bold = ['running 1 test', 'test b ... \x1b[32mok\x1b(B\x1b[m', '', ok];
    expect(read('cargo', ...bold)).to.deep.equal({ b: 'PASSED' });
    const none = ok.replace('1 passed', '0 passed');
    expect(read('cargo', 'running 0 tests', '', none)).to.deep.equal({});
    for (const lines of [['test b ... ok', '', none], ['test b ... ok'], ['', ok], []]) {
      expect(read('cargo', 'running 1 test', ...lines)).to.include({ 'running 1 test': 'ERROR' });
    }
  });

  it('has an ERROR for what is no result', () => {
    for (const said of ['', 'printed', 'bench: 1 ns/iter (+/- 0)']) {
      expect(read('cargo', 'running 1 test', `test b ... ${said}`), said).to.include({ b: 'ERROR' });
    }
  });
});

describe('the format jest', () => {
  const report = (...files: object[]): string =>
    `{"numTotalTestSuites":1,"testResults":${JSON.stringify(files)}}`;
  const tests = (...all: string[]): object => ({
    ...{ name: '/a.test.js', status: 'passed' },
    assertionResults: all.map((status, i) => ({ fullName: `a ${i}`, status })),
  });

  it('counts all reports, the worst result of each name', () => {
    const faked = JSON.stringify({ message: report(tests('passed', 'passed')) });
    const lines = [
      `x${report(tests('failed'))}`,
      faked,
      `${report(tests('passed'))}${report(tests('todo'))}`,
    ];
    expect(read('jest', ...lines)).to.deep.equal({ 'a 0': 'FAILED' });
  });

  it('has an ERROR for a report that is cut, and for results that it does not know', () => {
    expect(read('jest', report(tests('passed')).slice(0, -1))).to.deep.equal({ testResults: 'ERROR' });
    expect(read('jest', report(tests('constructor')))).to.deep.equal({ 'a 0': 'ERROR' });
    expect(read('jest', report(null as never, { status: {} }))).to.deep.equal({ testResults: 'ERROR' });
    expect(read('jest', '{"numTotalTestSuites":1,"testResults":{}}')).to.deep.equal({ testResults: 'ERROR' });
  });
});

describe('the format unittest', () => {
  const end = 'Ran 1 test in 0.000s';
  it('reads standard output where standard error tells nothing', () => {
    expect(read('unittest', 'test_a (m.C) ... ok', end)).to.deep.equal({ 'test_a (m.C)': 'PASSED' });
    const printed = { stdout: 'test_b (m.C) ... ok', stderr: `test_a (m.C) ... FAIL\n${end}` };
    expect([...readResults('unittest', printed, {})]).to.deep.equal([['test_a (m.C)', 'FAILED']]);
  });

  it('has an ERROR for a test without a result, and takes no other line for one', () => {
    const lines = [
      'test_a (m.C) ... Loading ... ok',
      'waits ... ok',
      'test_b (m.C) ... no',
      'ok',
      'Read me ... ok',
    ];
    expect(read('unittest', ...lines, end)).to.deep.equal({
      'test_a (m.C)': 'ERROR',
      'test_b (m.C)': 'PASSED',
    });
  });

  it('reads skips and docstrings that hold dots', () => {
    const lines = [
      "test_a (m.C) ... skipped 'a ... ok'",
      'test_b (m.C)',
      'Says ... more ... ok',
      'test_c (m.C)',
      'Doc ... ',
    ];
    expect(read('unittest', ...lines, end)).to.deep.equal({
      'test_a (m.C)': 'SKIPPED',
      'Says ... more': 'PASSED',
      Doc: 'ERROR',
    });
  });

  it('has an ERROR for a run that has no summary', () => {
    const ok = 'test_a (m.C) ... ok';
    const cut = { 'test_a (m.C)': 'PASSED', 'Ran ? tests': 'ERROR' };
    expect(read('unittest', ok)).to.deep.equal(cut);
    expect(read('unittest', ok, end, ok)).to.deep.equal(cut);
    expect(read('unittest', ok, end, ok, end)).to.deep.equal({ 'test_a (m.C)': 'PASSED' });
  });
});
