import { execFile } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'chai';

/** Takes all descriptors, gives some back, and says what comes of a child with three pipes. */
const PROGRAM = `
  import { closeSync, openSync } from 'node:fs';
  import { once } from 'node:events';
  import { setImmediate } from 'node:timers/promises';
  import { spawnChild } from ${JSON.stringify(join(import.meta.dirname, 'spawn-child.ts'))};
  // The first one takes some for good.
  await once(spawnChild('true', [], { stdio: 'pipe' }), 'exit');
  const taken = [];
  try { for (;;) taken.push(openSync('/dev/null')); } catch {}
  const said = [];
  for (const free of [0, 2, 3, 5]) {
    const given = taken.splice(0, free);
    given.forEach((fd) => closeSync(fd));
    try { spawnChild('true', [], { stdio: 'pipe' }); said.push('started'); } catch ({ code }) { said.push(code); }
    for (const _ of given) taken.push(openSync('/dev/null'));
    await setImmediate();
  }
  for (const fd of taken) closeSync(fd);
  const [code] = await once(spawnChild('true', [], { stdio: 'pipe' }), 'exit');
  console.log(JSON.stringify([...said, code]));
`;

describe('a child process', () => {
  it('for whose pipes there is no descriptor is an error, and ends nothing', async () => {
    const argv = [process.execPath, '--input-type=module', '--eval', PROGRAM];
    const limited = ['-c', 'ulimit -n 100; exec "$@"', 'sh', ...argv];
    const { stdout } = await promisify(execFile)('sh', limited, { timeout: 20_000 });
    expect(JSON.parse(stdout)).to.deep.equal(['EMFILE', 'EMFILE', 'EMFILE', 'EMFILE', 0]);
  });
});
