// Which kept outputs go when there are too many.

export interface Kept {
  readonly count: number;
  readonly sizeBytes: number;
}

/** Names to remove, oldest first, so that what stays is within both limits. `oldestFirst` maps names to sizes in bytes. */
export function toRemove(oldestFirst: ReadonlyMap<string, number>, total: Kept, max: Kept): string[] {
  const names: string[] = [];
  let { count, sizeBytes } = total;
  for (const [name, bytes] of oldestFirst) {
    if (count <= max.count && sizeBytes <= max.sizeBytes) break;
    names.push(name);
    count--;
    sizeBytes -= bytes;
  }
  return names;
}
