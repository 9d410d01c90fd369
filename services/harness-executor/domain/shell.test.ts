import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { fillInstruction, shellQuote } from './shell.ts';

const NASTY = [
  'plain',
  '',
  "it's",
  "''",
  '$HOME `id` $(id) "x" \\ \\\\ ! * ? ~ # ; & | < > \n\t end',
  '{{instruction}} $& $1',
  '-n --help',
  'ünïcode 🦊',
];

describe('shell text', () => {
  for (const text of NASTY) {
    it(`is one word to a real shell: ${JSON.stringify(text)}`, () => {
      const printed = execFileSync('sh', ['-c', `printf %s ${shellQuote(text)}`], { encoding: 'utf8' });
      expect(printed).to.equal(text);
    });

    it(`stands for the placeholder: ${JSON.stringify(text)}`, () => {
      const command = fillInstruction('printf "%s|%s" {{instruction}} {{INSTRUCTION}}', text);
      expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' })).to.equal(`${text}|${text}`);
    });
  }

  it('leaves other braces alone', () => {
    expect(fillInstruction('echo {{Instruction}} {instruction} {{ instruction }}', 'x')).to.equal(
      'echo {{Instruction}} {instruction} {{ instruction }}',
    );
  });
});
