import { expect } from 'chai';
import { polar } from '../../../test/support/cli.ts';
import { table } from './table.ts';

describe('what a command says', () => {
  it('steers no terminal, and has a line for each row of a table', async () => {
    // As what a command in a sandbox wrote may stand in a failure.
    const { stderr } = await polar(['status', '--config', 'red\u001b[31m\u009b']);
    expect(stderr).to.contain(String.raw`red\u001b[31m\u009b has 1 fault(s)`);
    expect(table(['name', 'why'], [['a', 'one\n two\r\n']])).to.equal('name  why\na     one two');
  });
});
