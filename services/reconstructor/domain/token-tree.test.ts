import { expect } from 'chai';
import { commonDepth, idsOf, isPrefix, TokenTree } from './token-tree.ts';

const ids = (...values: number[]): Int32Array => Int32Array.from(values);

describe('TokenTree', () => {
  it('gives back the ids of every place, whatever was added later', () => {
    const tree = new TokenTree();
    const abc = tree.extend(tree.root, ids(1, 2, 3));
    const abcd = tree.extend(abc, ids(4));
    const abx = tree.extend(tree.root, ids(1, 2, 9));
    const a = tree.ancestor(abcd, 1);
    expect([...idsOf(abc)]).to.deep.equal([1, 2, 3]);
    expect([...idsOf(abcd)]).to.deep.equal([1, 2, 3, 4]);
    expect([...idsOf(abx)]).to.deep.equal([1, 2, 9]);
    expect([...idsOf(a)]).to.deep.equal([1]);
    expect([...idsOf(abcd, 2)]).to.deep.equal([3, 4]);
    expect([...idsOf(tree.root)]).to.deep.equal([]);
  });

  it('gives one place for equal ids', () => {
    const tree = new TokenTree();
    const long = tree.extend(tree.root, ids(1, 2, 3, 4));
    const short = tree.extend(tree.root, ids(1, 2));
    expect(tree.ancestor(long, 2)).to.equal(short);
    expect(tree.extend(short, ids(3, 4))).to.equal(long);
    expect(tree.extend(short, ids())).to.equal(short);
    expect(tree.ancestor(long, 0)).to.equal(tree.root);
  });

  it('knows how much two places have in common', () => {
    const tree = new TokenTree();
    const one = tree.extend(tree.root, ids(1, 2, 3, 4));
    const two = tree.extend(tree.root, ids(1, 2, 3, 5, 6));
    const start = tree.extend(tree.root, ids(1, 2));
    expect(commonDepth(one, two)).to.equal(3);
    expect(commonDepth(one, one)).to.equal(4);
    expect(isPrefix(start, two)).to.equal(true);
    expect(isPrefix(one, two)).to.equal(false);
  });

  it('costs what is new: a thousand prompts that append hold each id once', () => {
    const tree = new TokenTree();
    let end = tree.root;
    for (let turn = 0; turn < 1000; turn++) {
      end = tree.extend(
        end,
        Int32Array.from({ length: 1000 }, (_, i) => turn + i),
      );
    }
    let held = 0;
    for (let node = end; node.parent !== undefined; node = node.parent) held += node.label.length;
    expect(held).to.equal(1_000_000);
    expect(end.depth).to.equal(1_000_000);
  });
});
