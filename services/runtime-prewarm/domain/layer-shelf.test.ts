import { expect } from 'chai';
import { LayerShelf } from './layer-shelf.ts';

describe('the shelf of layers', () => {
  let removed: string[];
  let freeBytes: number;
  let lacksInodes: boolean;
  let shelf: LayerShelf;
  beforeEach(() => {
    removed = [];
    freeBytes = 1_000;
    lacksInodes = false;
    const remove = async (key: string): Promise<void> => void removed.push(key);
    shelf = new LayerShelf(
      { maxBytes: 100, freeBytes: 500 },
      { freeBytes: () => freeBytes, lacksInodes: () => lacksInodes, remove },
    );
    shelf.add('a', 40, 1);
    shelf.add('b', 40, 2);
  });

  it('keeps all while they fit', async () => {
    await shelf.trim();
    expect(removed).to.deep.equal([]);
    expect(shelf.has('a')).to.equal(true);
  });

  it('lets the longest unused go, and no more than there must', async () => {
    shelf.hold('a', 3)?.();
    shelf.add('c', 40, 4);
    await shelf.trim('c');
    expect(removed).to.deep.equal(['b']);
    expect(shelf.has('b')).to.equal(false);
  });

  it('keeps what is held, and what it is told to', async () => {
    const release = shelf.hold('a', 0);
    const other = shelf.hold('a', 0);
    other?.();
    other?.();
    shelf.hold('b', 5);
    shelf.add('c', 90, 0);
    await shelf.trim('c');
    expect(removed).to.deep.equal([]);
    release?.();
    await shelf.trim('c');
    expect(removed).to.deep.equal(['a']);
  });

  it('lets all idle ones go for a disk that is full', async () => {
    freeBytes = 499;
    await shelf.trim();
    expect(removed).to.deep.equal(['a', 'b']);
  });

  it('does so, too, for one that has no inodes left', async () => {
    lacksInodes = true;
    expect(shelf.fits(1)).to.equal(false);
    await shelf.trim('b');
    expect(removed).to.deep.equal(['a']);
  });

  it('knows what cannot be had', () => {
    expect(shelf.fits(100)).to.equal(true);
    expect(shelf.fits(101)).to.equal(false);
    freeBytes = 499;
    expect(shelf.fits(1)).to.equal(false);
    shelf.drop('a');
    expect(shelf.hold('a', 6)).to.equal(undefined);
  });
});
