import { expect } from 'chai';
import { parseResults, sameResults, stripAnsi } from './test-results.ts';

const parsed = (output: string, expected = {}): object => Object.fromEntries(parseResults(output, expected));

describe('test results', () => {
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

  it('are read from plain lines, with colours and Windows ends', () => {
    expect(parsed('\x1b[32mPASSED\x1b[0m add\r\n\x1b[1;31mFAILED\x1b[0m\tsub\n')).to.deep.equal({
      add: 'PASSED',
      sub: 'FAILED',
    });
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

describe('the same results', () => {
  const results = new Map([
    ['T.a', 'PASSED'],
    ['b', 'FAILED'],
  ]);

  it('are equal name by name, whatever their file', () => {
    expect(sameResults(results, { 'T.a': 'PASSED', b: 'FAILED' })).to.equal(true);
    expect(sameResults(results, { 'x.py::b': 'FAILED', 'x.py::T::a': 'PASSED' })).to.equal(true);
  });

  it('differ by one status, one name more or one less', () => {
    expect(sameResults(results, { 'T.a': 'PASSED', b: 'PASSED' })).to.equal(false);
    expect(sameResults(results, { 'T.a': 'PASSED' })).to.equal(false);
    expect(sameResults(results, { 'T.a': 'PASSED', b: 'FAILED', c: 'PASSED' })).to.equal(false);
    expect(sameResults(results, { 'T.a': 'PASSED', c: 'FAILED' })).to.equal(false);
  });

  it('are never nothing', () => {
    expect(sameResults(new Map(), {})).to.equal(false);
  });
});

describe('ANSI codes', () => {
  it('go, and nothing else does', () => {
    expect(stripAnsi('\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b(plain [31m')).to.equal(
      'red link \x1b(plain [31m',
    );
  });
});
