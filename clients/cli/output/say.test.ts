import process from 'node:process';
import { expect } from 'chai';
import { polar } from '../../../test/support/cli.ts';
import { pacedProgress } from './say.ts';
import { table } from './table.ts';

describe('what a command says', () => {
  it('steers no terminal, and has a line for each row of a table', async () => {
    // As what a command in a sandbox wrote may stand in a failure.
    const { stderr } = await polar(['status', '--config', 'red\u001b[31m\u009b']);
    expect(stderr).to.contain(String.raw`red\u001b[31m\u009b has 1 fault(s)`);
    expect(table(['name', 'why'], [['a', 'one\n two\r\n']])).to.equal('name  why\na     one two');
  });

  it('tells how far it is now and then', () => {
    const { write } = process.stderr;
    let lines = 0;
    process.stderr.write = () => ++lines > 0;
    try {
      const tell = pacedProgress();
      for (let i = 1; i <= 1_000; i++) tell(`${i} of 1000 sessions`);
    } finally {
      process.stderr.write = write;
    }
    expect(lines).to.be.below(1_000);
  });
});
