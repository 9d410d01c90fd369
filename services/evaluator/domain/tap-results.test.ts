import { expect } from 'chai';
import { readTap } from './tap-results.ts';

const read = (...lines: string[]): string[] =>
  readTap(lines.join('\n')).map(([name, status]) => `${status} ${name}`);

describe('TAP', () => {
  it('has a plan before its points or behind them, in each document', () => {
    expect(read('1..2', 'ok 1 - a', 'not ok 2 - b')).to.deep.equal(['PASSED a', 'FAILED b']);
    expect(read('TAP version 14', 'ok 1 - a', '1..1', 'ok 1 - b', '1..1')).to.deep.equal([
      'PASSED a',
      'PASSED b',
    ]);
    expect(read('1..1', 'ok 1 - a', 'ok', 'ok 1 - b', 'ok 2', '1..2', 'ok', '1..0 # skip all')).to.deep.equal(
      ['PASSED a', 'PASSED b', 'PASSED 2'],
    );
  });

  it('is an ERROR where a plan is not kept, or is missing', () => {
    expect(read('1..2', 'ok 1 - a')).to.deep.equal(['PASSED a', 'ERROR 1..2']);
    expect(read('1..1', 'ok 1 - a', 'ok 2 - b')).to.deep.equal(['PASSED a', 'PASSED b', 'ERROR 1..?']);
    expect(read('ok 1 - a', 'ok 2 - b', '1..1')).to.deep.equal(['PASSED a', 'PASSED b', 'ERROR 1..1']);
    expect(read('ok 1 - a')).to.deep.equal(['PASSED a', 'ERROR 1..?']);
    expect(read('1..1', '1..1', 'ok 1 - a')).to.deep.equal(['ERROR 1..1', 'PASSED a']);
    expect(read('not ok', '1..1')).to.deep.equal(['ERROR 1..1']);
    expect(read('1..1', 'ok 1 - a', 'Bail out! no more')).to.deep.equal(['PASSED a', 'ERROR Bail out!']);
  });

  it('has sub-tests, before their test or in braces', () => {
    const inner = ['    ok 1 - b', '        ok 1 - d', '        1..1', '    not ok 2 - c', '    1..2'];
    const told = ['FAILED a', 'PASSED a > b', 'FAILED a > c', 'PASSED a > c > d'];
    expect(read(...inner, 'not ok 1 - a', '1..1').sort()).to.deep.equal([...told].sort());
    const braced = ['    1..1', '    not ok 1 - b {', '        1..1', '        ok 1 - c', '    }'];
    expect(read('1..1', 'not ok 1 - a # time=1.5ms {', ...braced, '}')).to.deep.equal([
      'FAILED a',
      'FAILED a > b',
      'PASSED a > b > c',
    ]);
    expect(read('1..1', 'ok 1 - reads {', '}')).to.deep.equal(['PASSED reads {']);
  });

  it('takes nothing for sub-tests that has no plan, and tells where one of theirs is not kept', () => {
    expect(read('1..1', '    ok 1 - faked', '  ok 2 - faked', 'not ok 1 - a')).to.deep.equal(['FAILED a']);
    expect(read('    1..2', '    ok 1 - b', 'ok 1 - a', '1..1')).to.deep.equal([
      'PASSED a',
      'PASSED a > b',
      'ERROR a > 1..2',
    ]);
  });

  it('leaves out diagnostics, wherever they stand', () => {
    const block = ['  ---', '  message: |', '    ok 7 - faked', 'ok 8 - faked', '  ...'];
    expect(read('1..1', 'not ok 1 - a', ...block, '# ok 9 - faked')).to.deep.equal(['FAILED a']);
  });

  it('has directives, names with escapes, and colours', () => {
    const points = [
      'ok 1 - a # SKIP no \\# 1',
      'not ok 2 - b # todo',
      'ok 3 - c \\# skip \\\\',
      '\x1b[31mnot ok 4 d\x1b[0m',
    ];
    expect(read('1..4', ...points)).to.deep.equal([
      'SKIPPED a',
      'SKIPPED b',
      'PASSED c # skip \\',
      'FAILED d',
    ]);
    expect(read('1..1', 'ok 1 - closes #12, skips')).to.deep.equal(['PASSED closes #12, skips']);
  });
});
