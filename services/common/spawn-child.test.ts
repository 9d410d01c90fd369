import { join } from 'node:path';
import { expect } from 'chai';
import { withoutDescriptors } from '../../test/support/without-descriptors.ts';

const PROGRAM = `
  import { once } from 'node:events';
  import { setImmediate } from 'node:timers/promises';
  import { spawnChild } from ${JSON.stringify(join(import.meta.dirname, 'spawn-child.ts'))};
  const start = () => spawnChild('true', [], { stdio: 'pipe' });
  // The first one takes some for good.
  await once(start(), 'exit');
  const said = [];
  for (const left of [0, 2, 3, 5]) {
    leave(left);
    try { start(); said.push('started'); } catch ({ code }) { said.push(code); }
    await setImmediate();
  }
  leaveAll();
  const [code] = await once(start(), 'exit');
  console.log(JSON.stringify([...said, code]));
`;

describe('a child process', () => {
  it('for whose pipes there is no descriptor is an error, and ends nothing', async () => {
    expect(await withoutDescriptors(PROGRAM)).to.deep.equal(['EMFILE', 'EMFILE', 'EMFILE', 'EMFILE', 0]);
  });
});
