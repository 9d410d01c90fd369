import { expect } from 'chai';
import { wantedResults } from './test-formats.ts';
import { hasResults, sameResults, stripAnsi } from './test-results.ts';

describe('the same results', () => {
  const results = new Map([
    ['T.a', 'PASSED'],
    ['b', 'FAILED'],
  ]);
  const same = (expected: Record<string, string>): boolean =>
    sameResults(results, wantedResults('pytest', expected));

  it('are equal name by name, whatever their file', () => {
    expect(same({ 'T.a': 'PASSED', b: 'FAILED' })).to.equal(true);
    expect(same({ 'x.py::b': 'FAILED', 'x.py::T::a': 'PASSED' })).to.equal(true);
  });

  it('differ by one status, one name more or one less', () => {
    expect(same({ 'T.a': 'PASSED', b: 'PASSED' })).to.equal(false);
    expect(same({ 'T.a': 'PASSED' })).to.equal(false);
    expect(same({ 'T.a': 'PASSED', b: 'FAILED', c: 'PASSED' })).to.equal(false);
    expect(same({ 'T.a': 'PASSED', c: 'FAILED' })).to.equal(false);
  });

  it('are never nothing', () => {
    expect(sameResults(new Map(), new Map())).to.equal(false);
  });
});

describe('the wanted results', () => {
  const results = new Map([
    ['a', 'PASSED'],
    ['b', 'FAILED'],
  ]);

  it('are there whatever else is', () => {
    expect(hasResults(results, new Map([['a', 'PASSED']]))).to.equal(true);
    expect(hasResults(results, results)).to.equal(true);
  });

  it('are not there with another status, missing, or none', () => {
    for (const wanted of [
      [['b', 'PASSED']],
      [
        ['a', 'PASSED'],
        ['c', 'PASSED'],
      ],
      [],
    ] as [string, string][][]) {
      expect(hasResults(results, new Map(wanted))).to.equal(false);
    }
    expect(hasResults(new Map(), results)).to.equal(false);
  });
});

describe('ANSI codes', () => {
  it('go, and nothing else does', () => {
    expect(stripAnsi('\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b\n(B [31m')).to.equal(
      'red link \x1b\n(B [31m',
    );
    // What `tput sgr0` prints, and other codes of more than a character.
    expect(stripAnsi('\x1b[32mgreen\x1b(B\x1b[m\x1b%G\x1b7\x1b8\x1b=\x1b>\x1bc')).to.equal('green');
  });
});
