// The streams that share a consumer with one, as that one sees them.
import type { CursorMember } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { STREAM_LOST_MS } from './members.ts';

type Seen = Pick<CursorMember, 'streamId' | 'seenMs'>;

/**
 * One that has written nothing for STREAM_LOST_MS is lost. The time is the observer's own: clocks of other machines, and
 * how long nobody could look, do not count.
 */
export class Bystanders {
  #seen = new Map<string, { readonly seenMs: bigint; readonly sinceMs: number }>();

  /** Ids of those that are lost at `nowMs`, when `members` were read. */
  lost(members: readonly Seen[], nowMs: number): string[] {
    const before = this.#seen;
    this.#seen = new Map();
    for (const { streamId, seenMs } of members) {
      const known = before.get(streamId);
      this.#seen.set(streamId, known?.seenMs === seenMs ? known : { seenMs, sinceMs: nowMs });
    }
    const isLost = ({ sinceMs }: { sinceMs: number }): boolean => nowMs - sinceMs > STREAM_LOST_MS;
    return [...this.#seen].filter(([, seen]) => isLost(seen)).map(([streamId]) => streamId);
  }

  /** They could not be looked at. */
  forget(): void {
    this.#seen.clear();
  }
}
