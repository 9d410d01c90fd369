import { expect } from 'chai';
import { type DiskRoom, hasFilled, isFull } from './disk-room.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const room: DiskRoom = { freeBytes: 10 * GIB, totalBytes: 100 * GIB, freeInodes: 5e6, totalInodes: 6e6 };

describe('room on a disk', () => {
  it('is none where too little is left, of bytes or of inodes', () => {
    expect(isFull(room)).to.equal(false);
    expect(isFull({ ...room, freeBytes: 15 * MIB })).to.equal(true);
    expect(isFull({ ...room, freeBytes: 17 * MIB })).to.equal(false);
    expect(isFull({ ...room, freeInodes: 100 })).to.equal(true);
  });

  it('is less on a small disk', () => {
    const small = { ...room, totalBytes: 64 * MIB };
    expect(isFull({ ...small, freeBytes: 2 * MIB })).to.equal(false);
    expect(isFull({ ...small, freeBytes: MIB - 1 })).to.equal(true);
  });

  it('is there where a file system counts nothing', () => {
    expect(isFull({ ...room, freeInodes: 0, totalInodes: 0 })).to.equal(false);
    expect(isFull({ freeBytes: 0, totalBytes: 0, freeInodes: 0, totalInodes: 0 })).to.equal(false);
  });

  it('was taken by a sandbox that has written nearly all of it, and by none that was made without', () => {
    expect(hasFilled(room, { bytes: 9.5 * GIB, inodes: 100 })).to.equal(true);
    expect(hasFilled(room, { bytes: 5 * GIB, inodes: 100 })).to.equal(false);
    expect(hasFilled({ ...room, freeBytes: MIB }, { bytes: MIB, inodes: 100 })).to.equal(false);
  });

  it('was taken, too, by one that has made nearly all of its files', () => {
    expect(hasFilled(room, { bytes: MIB, inodes: 4.9e6 })).to.equal(true);
    expect(hasFilled(room, { bytes: MIB, inodes: 3e6 })).to.equal(false);
    expect(hasFilled({ ...room, freeInodes: 0, totalInodes: 0 }, { bytes: MIB, inodes: 9 })).to.equal(false);
  });
});
