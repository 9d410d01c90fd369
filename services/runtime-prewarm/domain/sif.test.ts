import { expect } from 'chai';
import { SIF_HEAD_BYTES, sifRoot } from './sif.ts';

const [LABELS, PARTITION] = [0x4001, 0x4004];
const [DATA, ROOT] = [3, 2];
const [SQUASHFS, EXT3, ENCRYPTED] = [1, 2, 5];
const TABLE = 4_096;

interface Entry {
  readonly type: number;
  readonly offset?: number;
  readonly part?: number;
  readonly fileSystem?: number;
}

/** As `apptainer sif` writes it, with places for 48 entries. */
function headWith(entries: readonly Entry[], table = TABLE): Buffer {
  const head = Buffer.alloc(SIF_HEAD_BYTES);
  head.write('#!/usr/bin/env run-singularity\n', 0, 'latin1');
  head.write('SIF_MAGIC\x0001\x0002\0', 32, 'latin1');
  head.writeBigInt64LE(48n, 88);
  head.writeBigInt64LE(BigInt(table), 96);
  entries.forEach(({ type, offset = 0, part = 0, fileSystem = 0 }, i) => {
    const at = TABLE + i * 585;
    head.writeInt32LE(type, at);
    head[at + 4] = 1;
    head.writeBigInt64LE(BigInt(offset), at + 17);
    head.writeInt32LE(fileSystem, at + 201);
    head.writeInt32LE(part, at + 205);
  });
  return head;
}

describe('sifRoot', () => {
  it('finds the root file system behind what else is in the file', () => {
    const others = [
      { type: LABELS, part: ROOT },
      { type: PARTITION, part: DATA },
    ];
    const root = { type: PARTITION, part: ROOT, fileSystem: SQUASHFS, offset: 5_000_000_000 };
    expect(sifRoot(headWith([...others, root]))).to.eql({ offset: 5_000_000_000 });
  });

  it('says why there is none', () => {
    const root = { type: PARTITION, part: ROOT };
    expect(sifRoot(headWith([{ ...root, fileSystem: ENCRYPTED }]))).to.eql({ unreadable: 'it is encrypted' });
    const ext = sifRoot(headWith([{ ...root, fileSystem: EXT3 }]));
    expect(ext).to.eql({ unreadable: 'its root file system is no squashfs' });
    const none = { unreadable: 'it has no root file system' };
    for (const table of [TABLE, -1, SIF_HEAD_BYTES, Number.MAX_SAFE_INTEGER]) {
      expect(sifRoot(headWith([], table))).to.eql(none);
    }
    expect(sifRoot(headWith([{ ...root, fileSystem: SQUASHFS }]).subarray(0, TABLE + 100))).to.eql(none);
    for (const head of [Buffer.alloc(0), Buffer.from('no image at all'), headWith([]).subarray(0, 100)]) {
      expect(sifRoot(head)).to.eql({ unreadable: 'it is no SIF file' });
    }
  });
});
