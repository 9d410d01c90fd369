import { expect } from 'chai';
import { argumentsOfInput, functionOfCustom, InputReader, inputOf } from './custom-tools.ts';

/** Read cut into pieces of one letter each; every piece is whole letters, as clients decode each by itself. */
function inPieces(args: string): string {
  const reader = new InputReader();
  const pieces = [...[...args].map((letter) => reader.push(letter)), reader.end()];
  for (const piece of pieces) expect(piece.isWellFormed(), JSON.stringify(piece)).to.equal(true);
  return pieces.join('');
}

describe('custom tools', () => {
  it('are functions with one string, which tells the grammar', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' };
    const tool = functionOfCustom({ name: 'patch', description: 'd', format }) as { function: object };
    expect(tool.function).to.include({ name: 'patch', description: 'd' });
    expect(JSON.stringify(tool)).to.include('lark grammar');
    const nested = functionOfCustom({
      name: 'patch',
      format: { type: 'grammar', grammar: { definition: 'one' } },
    });
    expect(JSON.stringify(nested)).to.include('one').and.not.include('undefined');
  });

  it('give the text of a call, whole and letter by letter', () => {
    const inputs = ['', 'plain', 'a "quoted" \\ line\n\ttab', '日本語 👩‍👩‍👧', '\u2028', '}"}', '\\u0041'];
    for (const input of inputs) {
      const compact = argumentsOfInput(input);
      const spaced = compact.replace('{"input":', ' {\n "input" :  ');
      const escaped = compact.replace(/[^\x20-\x7e]/g, (letter) => {
        return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
      });
      for (const args of [compact, spaced, escaped]) {
        expect(inputOf(args), args).to.equal(input);
        expect(inPieces(args), args).to.equal(input);
      }
    }
  });

  it('give what is shaped otherwise as it is, and of what is cut off as much as there is', () => {
    for (const args of [
      'not json',
      '{"other": 1}',
      '{"in',
      '{"input": 5}',
      '["input"]',
      '',
      '{"inputs": "x"}',
      `{${' '.repeat(300)}"input": "x"}`,
    ]) {
      expect(inputOf(args)).to.equal(args);
      expect(inPieces(args)).to.equal(args);
    }
    expect(inputOf('{"input": "half a li')).to.equal('half a li');
    expect(inPieces('{"input": "half \\ud83d\\ude')).to.equal('half \\ud83d\\ude');
    expect(inPieces('{"input": "half a li\\')).to.equal('half a li\\');
    expect(inputOf('{"input": "x", "more": 1}')).to.equal('x');
    expect(inputOf(undefined)).to.equal('');
  });
});
