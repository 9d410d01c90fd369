import { expect } from 'chai';
import { equalInPlace, MessageNode } from './message-tree.ts';

describe('MessageNode', () => {
  const root = new MessageNode();
  const abc = root.extend(['a', 'b', 'c']);

  it('is one place for equal messages, and gives them back', () => {
    expect(root.extend(['a', 'b']).next('c')).to.equal(abc);
    expect(abc.list()).to.deep.equal(['a', 'b', 'c']);
    expect(root.list()).to.deep.equal([]);
    expect(abc.ancestor(2).list()).to.deep.equal(['a', 'b']);
    expect(abc.ancestor(9)).to.equal(abc);
  });

  it('counts what is equal at the same place', () => {
    const equal = (...digests: string[]): number => equalInPlace(root.extend(digests), abc);
    expect(equal('a', 'b', 'c', 'd')).to.equal(3);
    expect(equal('a', 'x', 'c', 'd')).to.equal(2);
    expect(equal('x', 'b', 'x')).to.equal(1);
    expect(equal('a', 'b')).to.equal(2);
    expect(equal('b', 'c')).to.equal(0);
    expect(equal()).to.equal(0);
  });
});
