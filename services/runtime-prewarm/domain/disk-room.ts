// Whether a disk has room left, and who has taken it.

/** What a file system says of itself; some have no count of inodes, or none of anything: 0. */
export interface DiskRoom {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeInodes: number;
  readonly totalInodes: number;
}

/** Less is none: who finds no room for a file often deletes what there is of it. */
const BYTES_MIN = 16 * 1024 * 1024;
const INODES_MIN = 128;
/** The same of a small disk. */
const SHARE_MIN = 1 / 64;

/** Of what was free, from which on a sandbox has filled a disk by itself. */
const OWN_SHARE = 0.9;

export const isFull = ({ freeBytes, totalBytes, freeInodes, totalInodes }: DiskRoom): boolean =>
  freeBytes < Math.min(BYTES_MIN, totalBytes * SHARE_MIN) ||
  freeInodes < Math.min(INODES_MIN, totalInodes * SHARE_MIN);

/** Of all inodes, that caches leave free: there is no setting of it, as a disk is seldom short of them alone. */
const CACHE_INODES_SHARE = 1 / 10;

/** For caches of many small files. */
export const lacksInodes = ({ freeInodes, totalInodes }: DiskRoom): boolean =>
  freeInodes < totalInodes * CACHE_INODES_SHARE;

/** What a sandbox takes of a disk. */
export interface DiskUse {
  readonly bytes: number;
  /** 0 where nobody counts them. */
  readonly inodes: number;
}

/** `before`: as the sandbox was made; `written`: since then. */
export const hasFilled = (before: DiskRoom, { bytes, inodes }: DiskUse): boolean =>
  !isFull(before) &&
  (bytes >= before.freeBytes * OWN_SHARE ||
    (before.totalInodes > 0 && inodes >= before.freeInodes * OWN_SHARE));
