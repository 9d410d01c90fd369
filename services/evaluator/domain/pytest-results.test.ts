import { expect } from 'chai';
import { readResults } from './test-formats.ts';

const parsed = (stdout: string, expected = {}): object =>
  Object.fromEntries(readResults('pytest', { stdout, stderr: '' }, expected));

describe('test results of pytest', () => {
  it('are read from a pytest summary', () => {
    const output = [
      '============ short test summary info ============',
      'PASSED tests/test_a.py::test_one',
      'PASSED tests/test_a.py::TestB::test_two',
      'FAILED tests/test_a.py::TestB::test_three - AssertionError: 1 - 2 != 3',
      'ERROR tests/test_b.py - ImportError: no x',
      'SKIPPED [1] tests/test_a.py:10: not here',
      '===== 1 failed, 2 passed in 0.1s =====',
    ].join('\n');
    expect(parsed(output)).to.deep.equal({
      test_one: 'PASSED',
      'TestB.test_two': 'PASSED',
      'TestB.test_three': 'FAILED',
      'tests/test_b.py': 'ERROR',
      '[1] tests/test_a.py:10: not here': 'SKIPPED',
    });
  });

  describe('of pytest', () => {
    const session = '============================= test session starts ==============================';
    const summary = '=========================== short test summary info ============================';
    const passes = '==================================== PASSES ====================================';
    const printed = [
      '----------------------------- Captured stdout call -----------------------------',
      'PASSED another',
      '------------------------------ Captured log call -------------------------------',
      'ERROR    root:test_x.py:3 boom',
    ];
    const live = [
      '-------------------------------- live log call ---------------------------------',
      'ERROR    root:test_x.py:3 boom',
      'PASSED                                                                   [100%]',
    ];
    const told = [summary, 'PASSED x.py::a', '============ 1 passed in 0.01s ============'];
    const count = (name: string, ...lines: string[]): void => {
      expect(parsed(lines.join('\n')), lines.join('\n')).to.deep.equal({ [name]: 'PASSED' });
    };

    it('are those of its summary: what tests print and log is shown before it', () => {
      count('a', session, 'x.py ERROR', 'ERROR of the test', passes, ...printed, ...told);
      count('a', passes, ...printed, ...told);
      count('a', session, ...live, passes, ...printed, ...told);
      count('a', '.', ...live, ...told);
      count(
        'a',
        `\x1b[1m${session}\x1b[0m\r`,
        'ERROR b\r',
        `\x1b[36m\x1b[1m${summary}\x1b[0m\r`,
        'PASSED a\r',
      );
      for (const title of ['ERRORS', 'FAILURES', 'XFAILURES', 'XPASSES']) {
        count('a', `= ${title} =`, ...printed, ...told);
      }
    });

    it('are all that is printed where it has no summary, and of each run of it', () => {
      count('b', session, 'PASSED b', '==== 1 passed in 0.01s ====');
      expect(parsed(['PASSED b', session, 'PASSED c', session, ...live, ...told].join('\n'))).to.deep.equal({
        b: 'PASSED',
        c: 'PASSED',
        a: 'PASSED',
      });
      const twice = [session, passes, ...printed, ...told, session, ...live, summary, 'FAILED y.py::b'];
      expect(parsed(twice.join('\n'))).to.deep.equal({ a: 'PASSED', b: 'FAILED' });
    });
  });

  it('are read from plain lines, with colours and Windows ends', () => {
    expect(parsed('\x1b[32mPASSED\x1b[0m add\r\n\x1b[1;31mFAILED\x1b[0m\tsub\n')).to.deep.equal({
      add: 'PASSED',
      sub: 'FAILED',
    });
  });

  it('are read where `tput` has coloured them', () => {
    const [green, plain] = ['\x1b[32m', '\x1b(B\x1b[m'];
    const output = `${green}PASSED${plain} add\nFAILED ${green}sub${plain}\nPASSED mul\n${green}FAILED${plain} mul`;
    expect(parsed(output)).to.deep.equal({ add: 'PASSED', sub: 'FAILED', mul: 'FAILED' });
  });

  it('are read whatever a reason holds, and behind a title that does not end', () => {
    for (const odd of ['\r', '\u2028', '\u2029', '\u0085']) {
      const reason = `FAILED x.py::a - ValueError: 1${odd}2`;
      expect(parsed(`PASSED x.py::a\n${reason}`), JSON.stringify(odd)).to.deep.equal({ a: 'FAILED' });
    }
    expect(parsed('PASSED x.py::a\n\x1b]0;title\nFAILED x.py::a\nbell \x07')).to.deep.equal({ a: 'FAILED' });
  });

  it('of tests with a sub-test that failed are FAILED, though pytest says PASSED', () => {
    // pytest 9; pytest-subtests with pytest 8.
    for (const line of [
      'SUBFAILED(i=2) x.py::U::a - AssertionError: 2 == 2',
      'SUBFAILED[m] (i=1) x.py::U::a - assert 1 != 1',
      'SUBFAILED(<subtest>) my tests/x.py::U::a[b c] - x::y',
      "SUBFAILED[a - b] (host='::1', of=(1, 2)) x.py::U::a",
      '[m] (i=1) SUBFAIL x.py::U::a - assert 1 != 1',
      '(i=2) SUBFAIL x.py::U::a',
    ]) {
      const name = line.includes('[b c]') ? 'U.a[b c]' : 'U.a';
      const test = `x.py::${name.replace('.', '::')}`;
      expect(parsed(`PASSED ${test}\n${line}`), line).to.deep.equal({ [name]: 'FAILED' });
      expect(parsed(`${line}\nPASSED ${test}`), line).to.deep.equal({ [name]: 'FAILED' });
    }
    const dashed = 'PASSED x.py::a - b\nSUBFAILED(i=1) x.py::a - b - why';
    expect(parsed(dashed, { 'a - b': 'PASSED' })).to.deep.equal({ 'a - b': 'FAILED' });
    expect(parsed('SUBPASSED(i=1) x.py::a\nSUBSKIPPED(i=1) x.py::a\nSUBFAILED x')).to.deep.equal({});
  });

  it('are read in one pass, whatever a line holds', () => {
    for (const part of [') ', '] x', 'x::', ' SUBFAIL ', '::', 'a ', 'a', ') a ']) {
      expect(parsed(`SUBFAILED${part.repeat(400_000)}\n(${part.repeat(400_000)}`)).to.be.an('object');
    }
  });

  it('begin a line, with a space behind', () => {
    const output =
      ' PASSED a\nx PASSED b\nPASSEDc\nFAILED: d\nPASSED\nPASSED   \ntests/x.py::y PASSED\npassed z';
    expect(parsed(output)).to.deep.equal({});
  });

  it('keep parameters whole', () => {
    expect(parsed('FAILED a.py::T::test_x[1 - 2::3] - assert 1 - 2\nPASSED a.py::test_y[a b]')).to.deep.equal(
      {
        'T.test_x[1 - 2::3]': 'FAILED',
        'test_y[a b]': 'PASSED',
      },
    );
    expect(parsed('PASSED a.py::test_z[x - y')).to.deep.equal({ 'test_z[x - y': 'PASSED' });
    expect(parsed('FAILED a.py::test_w - assert [1] == [2]')).to.deep.equal({ test_w: 'FAILED' });
  });

  it('have the names that are expected, with a dash in them, too', () => {
    const expected = {
      'add - small': 'PASSED',
      'x.py::add - large': 'PASSED',
      'T.sub [a] - b': 'FAILED',
      sub: '',
    };
    const output = [
      'PASSED add - small',
      'PASSED y.py::add - large',
      'FAILED T.sub [a] - b - not equal - 1',
      'FAILED sub - add - small',
      'FAILED add - odd',
    ].join('\n');
    expect(parsed(output, expected)).to.deep.equal({
      'add - small': 'PASSED',
      'add - large': 'PASSED',
      'T.sub [a] - b': 'FAILED',
      sub: 'FAILED',
      add: 'FAILED',
    });
  });

  it('count the last of two', () => {
    expect(parsed('PASSED a\nFAILED a')).to.deep.equal({ a: 'FAILED' });
    expect(parsed('FAILED x.py::a\nPASSED x.py::a')).to.deep.equal({ a: 'PASSED' });
  });

  it('count the worst of tests that differ by file or outer class alone', () => {
    const worst = (...lines: string[]): object => parsed(lines.join('\n'));
    expect(worst('FAILED x.py::a - why', 'PASSED y.py::a')).to.deep.equal({ a: 'FAILED' });
    expect(worst('PASSED x.py::a', 'FAILED y.py::a', 'SKIPPED z.py::a')).to.deep.equal({ a: 'FAILED' });
    expect(worst('FAILED x.py::A::T::a', 'ERROR x.py::B::T::a')).to.deep.equal({ 'T.a': 'ERROR' });
    expect(worst('PASSED x.py::a', 'SKIPPED y.py::a')).to.deep.equal({ a: 'SKIPPED' });
    // Each test's last result counts before they are compared.
    expect(worst('FAILED x.py::a', 'PASSED y.py::a', 'PASSED x.py::a')).to.deep.equal({ a: 'PASSED' });
  });
});
