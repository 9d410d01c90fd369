import { expect } from 'chai';
import { toRemove } from './retention.ts';

const files = new Map([
  ['a', 10],
  ['b', 20],
  ['c', 30],
]);
const total = { count: 3, sizeBytes: 60 };

describe('retention', () => {
  it('removes nothing within the limits', () => {
    expect(toRemove(files, total, { count: 3, sizeBytes: 60 })).to.deep.equal([]);
    expect(toRemove(new Map(), { count: 0, sizeBytes: 0 }, { count: 0, sizeBytes: 0 })).to.deep.equal([]);
  });

  it('removes the oldest over the count', () => {
    expect(toRemove(files, total, { count: 2, sizeBytes: 60 })).to.deep.equal(['a']);
    expect(toRemove(files, total, { count: 0, sizeBytes: 60 })).to.deep.equal(['a', 'b', 'c']);
  });

  it('removes the oldest over the bytes', () => {
    expect(toRemove(files, total, { count: 3, sizeBytes: 59 })).to.deep.equal(['a']);
    expect(toRemove(files, total, { count: 3, sizeBytes: 40 })).to.deep.equal(['a', 'b']);
  });
});
