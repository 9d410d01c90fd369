// Where the root file system lies in an image file of apptainer (SIF 1): a header, a table of what is in the file, and that.

/** Bytes from the beginning that hold header and table, as apptainer makes them; it can have 48 entries. */
export const SIF_HEAD_BYTES = 65_536;

const MAGIC = 'SIF_MAGIC\0';
const MAGIC_AT = 32;
const ENTRIES_AT = 88;
const TABLE_AT = 96;
const HEADER_BYTES = 128;

const ENTRY_BYTES = 585;
const IS_USED_AT = 4;
const PLACE_AT = 17;
const FILE_SYSTEM_AT = 201;
const PART_AT = 205;
const PARTITION = 0x4004;
const ROOT_PART = 2;
const SQUASHFS = 1;
const ENCRYPTED_SQUASHFS = 5;

export type SifRoot = { readonly offset: number } | { readonly unreadable: string };

/** `head`: the first bytes of the file, all of them where it has less. */
export function sifRoot(head: Uint8Array): SifRoot {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const isSif = bytes.toString('latin1', MAGIC_AT, MAGIC_AT + MAGIC.length) === MAGIC;
  if (!isSif || bytes.length < HEADER_BYTES) return { unreadable: 'it is no SIF file' };
  const [count, table] = [ENTRIES_AT, TABLE_AT].map((at) => Number(bytes.readBigInt64LE(at))) as [
    number,
    number,
  ];
  for (let at = table, left = count; left > 0 && at >= 0 && at + ENTRY_BYTES <= bytes.length; left--) {
    const isPartition = bytes.readInt32LE(at) === PARTITION && bytes[at + IS_USED_AT] === 1;
    if (isPartition && bytes.readInt32LE(at + PART_AT) === ROOT_PART) return rootAt(bytes, at);
    at += ENTRY_BYTES;
  }
  return { unreadable: 'it has no root file system' };
}

function rootAt(bytes: Buffer, entry: number): SifRoot {
  const fileSystem = bytes.readInt32LE(entry + FILE_SYSTEM_AT);
  if (fileSystem === ENCRYPTED_SQUASHFS) return { unreadable: 'it is encrypted' };
  if (fileSystem !== SQUASHFS) return { unreadable: 'its root file system is no squashfs' };
  return { offset: Number(bytes.readBigInt64LE(entry + PLACE_AT)) };
}
