import { expect } from 'chai';
import { Holds } from './holds.ts';
import { isAbove, longestUnused } from './watermarks.ts';

const room = (freeBytes: number, totalBytes: number) => ({
  ...{ freeBytes, totalBytes, freeInodes: 0, totalInodes: 0 },
});

describe('watermarks', () => {
  it('count what is used, and nothing of a disk that cannot be asked', () => {
    expect(isAbove(room(15, 100), 85)).to.equal(false);
    expect(isAbove(room(14, 100), 85)).to.equal(true);
    expect(isAbove(room(0, 100), 100)).to.equal(false);
    for (const none of [undefined, room(0, 0)]) expect(isAbove(none, 1)).to.equal(false);
  });

  it('choose the longest unused, and none that was used a moment ago', () => {
    const all = [3, 1, 2].map((usedMs) => ({ usedMs }));
    expect(longestUnused(all, 10, 0)).to.equal(all[1]);
    expect(longestUnused(all, 10, 9)).to.equal(all[1]);
    expect(longestUnused(all, 10, 10)).to.equal(undefined);
    expect(longestUnused([], 10, 0)).to.equal(undefined);
  });
});

describe('holds', () => {
  it('last until all have let go, each of which counts once', () => {
    const holds = new Holds();
    const [one, two] = [holds.hold('a'), holds.hold('a')];
    one();
    one();
    expect(holds.has('a')).to.equal(true);
    two();
    expect(holds.has('a')).to.equal(false);
  });
});
