// What a command was not let connect to.

import { DENIED_TARGETS_MAX } from '../../common/limits.ts';

/** Of one target: whoever asks chooses it. */
const TARGET_CHARS_MAX = 262;

/** In the form of the message DeniedConnections. */
export interface DeniedCount {
  readonly count: number;
  readonly targets: readonly string[];
}

export const NOTHING_DENIED: DeniedCount = { count: 0, targets: [] };

export class Denials implements DeniedCount {
  readonly #targets = new Set<string>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get targets(): readonly string[] {
    return [...this.#targets];
  }

  /** Without a target: nobody knows where it was to go. */
  add({ count, targets }: DeniedCount): void {
    this.#count += count;
    for (const target of targets) {
      if (this.#targets.size < DENIED_TARGETS_MAX) this.#targets.add(target.slice(0, TARGET_CHARS_MAX));
    }
  }
}

/** For the end of a sentence; empty where nothing was denied. */
export function deniedText({ count, targets }: DeniedCount): string {
  if (count === 0) return '';
  const where = targets.length === 0 ? '' : ` (${targets.join(', ')})`;
  return `, ${count} connection(s) denied${where}`;
}
