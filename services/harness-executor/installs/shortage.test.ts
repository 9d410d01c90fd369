import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeWheel } from '../../../test/support/wheel.ts';
import { withoutDescriptors } from '../../../test/support/without-descriptors.ts';

const HERE = import.meta.dirname;

describe('a harness on a node without descriptors', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-shortage-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('that is installed is not made anew, and the failure is the doing of the node', async () => {
    const program = `
      import { statSync } from 'node:fs';
      import { ensureInstalled } from ${JSON.stringify(join(HERE, 'install.ts'))};
      const adapter = { name: 'test', install: ${JSON.stringify(makeWheel(folder))}, python: '3.11' };
      const events = { started: () => said.push('installs'), progress() {}, done() {} };
      const said = [];
      const ensure = () => ensureInstalled(${JSON.stringify(join(folder, 'cache'))}, adapter, events, new AbortController().signal);
      const there = statSync(await ensure()).ino;
      for (const left of [0, 1]) {
        leave(left);
        await ensure().catch(({ reason, message }) => said.push([reason, message.includes('EMFILE')]));
        leaveAll();
      }
      console.log(JSON.stringify([...said, statSync(await ensure()).ino === there]));
    `;
    const failed = ['HARNESS_INSTALL_FAILED', true];
    expect(await withoutDescriptors(program)).to.deep.equal(['installs', failed, failed, true]);
  });

  it('whose plug-in cannot be read, or called, is not invalid for that, and ends nothing', async () => {
    writeFileSync(
      join(folder, 'one.mjs'),
      "export const adapter = { name: 'one', command: () => ({ argv: ['true'] }) };",
    );
    const program = `
      import { loadPlugin } from ${JSON.stringify(join(HERE, '../adapters/plugin.ts'))};
      const load = () => loadPlugin(${JSON.stringify(folder)}, 'one.mjs');
      leave(0);
      const { reason, retryable } = await load().catch((error) => error);
      leaveAll();
      const adapter = await load();
      const said = [];
      for (const left of [0, 1, 2, 3, 4]) {
        leave(left);
        try { adapter.command({}); } catch (error) { said.push(error.reason); }
        leaveAll();
      }
      console.log(JSON.stringify([reason, retryable, adapter.name, said, adapter.command({}).argv]));
    `;
    const reason = 'HARNESS_INSTALL_FAILED';
    const called = Array.from({ length: 5 }, () => reason);
    expect(await withoutDescriptors(program)).to.deep.equal([reason, true, 'one', called, ['true']]);
  });
});
