// When images go for room on their disk: above one share they begin to, and they go until it is below another.
import type { DiskRoom } from './disk-room.ts';

export interface Watermarks {
  readonly highPercent: number;
  readonly lowPercent: number;
  /** One that was used since then stays. */
  readonly keepMs: number;
}

/** A file system that does not say how large it is counts as empty. */
const usedPercent = ({ freeBytes, totalBytes }: DiskRoom): number =>
  totalBytes > 0 ? 100 * (1 - freeBytes / totalBytes) : 0;

export const isAbove = (room: DiskRoom | undefined, percent: number): boolean =>
  room !== undefined && usedPercent(room) > percent;

/** Undefined: all of them were used within `keepMs`. */
export function longestUnused<T extends { readonly usedMs: number }>(
  all: readonly T[],
  nowMs: number,
  keepMs: number,
): T | undefined {
  const old = all.filter(({ usedMs }) => nowMs - usedMs >= keepMs);
  return old.reduce<T | undefined>(
    (best, one) => (best === undefined || one.usedMs < best.usedMs ? one : best),
    undefined,
  );
}
