import { expect } from 'chai';
import { filterPatch } from './patch.ts';
import { pathsLeft, withoutPresent } from './patch-present.ts';

const [OLD, NEW, NONE] = ['1'.repeat(40), '2'.repeat(40), '0'.repeat(40)];
const HUNK = '@@ -1 +1 @@\n-old\n+new\n';
const changed = (path: string, index: string, more = ''): string =>
  `diff --git a/${path} b/${path}\n${more}${index}\n--- a/${path}\n+++ b/${path}\n${HUNK}`;

describe('what a fresh sandbox has of a patch', () => {
  const left = (text: string, present: Record<string, string>): readonly string[] =>
    withoutPresent(filterPatch(Buffer.from(text), []), new Map(Object.entries(present))).files;
  const x = changed('x', `index ${OLD}..${NEW} 100644`);
  const y = changed('y', `index ${OLD}..${NEW} 100644`);

  it('is no change: files with the content and mode that it leaves, and such that it takes away', () => {
    expect(left(x + y, { x: `100644 ${NEW}`, y: `100644 ${OLD}` })).to.deep.equal(['y']);
    expect(left(changed('x', 'index 1111111..2222222 100644'), { x: `100644 ${NEW}` })).to.deep.equal([]);
    const gone = changed('x', `index ${OLD}..${NONE}`, 'deleted file mode 100644\n');
    expect(left(gone, { x: '' })).to.deep.equal([]);
    expect(left(gone, { x: `100644 ${OLD}` })).to.deep.equal(['x']);
  });

  it('is one where it is other, not known, or the patch does not say what it leaves', () => {
    expect(left(x, {})).to.deep.equal(['x']);
    expect(left(x, { x: '' })).to.deep.equal(['x']);
    expect(left(x, { x: `100755 ${NEW}` })).to.deep.equal(['x']);
    const made = changed('x', `index ${NONE}..${NEW}`, 'new file mode 100755\n');
    expect(left(made, { x: `100644 ${NEW}` })).to.deep.equal(['x']);
    expect(left(made, { x: `100755 ${NEW}` })).to.deep.equal([]);
    expect(left(`--- a/x\n+++ b/x\n${HUNK}`, { x: `100644 ${NEW}` })).to.deep.equal(['x']);
    const renamed = `diff --git a/x b/z\nrename from x\nrename to z\nindex ${OLD}..${NEW} 100644\n`;
    expect(pathsLeft(filterPatch(Buffer.from(renamed + x), []))).to.deep.equal(['x']);
  });
});
