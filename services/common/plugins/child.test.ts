// Processes of plug-ins, where what started them is gone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { eventually } from '../../../test/support/eventually.ts';
import { processesWith } from '../../../test/support/runtime-prewarm.ts';
import { sleepMark } from '../../../test/support/sleep-mark.ts';

const CHILD = join(import.meta.dirname, 'child.ts');

describe('the process of a plug-in', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-plugins-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  it('ends with who started it, be it in a wait for a program of its own', async () => {
    const plugin = join(folder, 'waits.mjs');
    const program = sleepMark();
    writeFileSync(
      plugin,
      `import { execSync } from 'node:child_process'; execSync(${JSON.stringify(program)});`,
    );
    const starts = `import { startPlugin } from ${JSON.stringify(CHILD)}; startPlugin(${JSON.stringify(plugin)}, 600_000);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', starts], { stdio: 'ignore' });
    const left = (): number[] => [program, plugin].flatMap(processesWith);
    try {
      await eventually('it waits', () => processesWith(program).length > 0);
    } finally {
      parent.kill('SIGKILL');
      await once(parent, 'exit');
    }
    try {
      await eventually('it is gone', () => left().length === 0, 10_000);
    } finally {
      for (const pid of left()) process.kill(pid, 'SIGKILL');
    }
  });
});
