// Batches that were sent before and are to be sent again, fetched before they are asked for: several at once, as many
// as there is room for. Unlike those of the log they come in any order, as delays end and streams leave.
import { AHEAD_BATCHES_MAX, AHEAD_BYTES_MAX, STREAM_POLL_MS } from '../../common/limits.ts';
import { type Held, hasRoom } from './ahead.ts';
import type { Resolved, Room } from './batches.ts';
import { Wakeup } from './wakeup.ts';

/** Gives undefined where the batch was removed from the stream. Resolves `room` before it fetches trajectories. */
export type Fetch = (batchId: number, room: Room) => Promise<Resolved | undefined>;

interface Entry extends Held {
  found?: Resolved | undefined;
  error?: unknown;
}

export class Again {
  readonly #fetch: Fetch;
  readonly #signal: AbortSignal;
  readonly #wake: () => void;
  readonly #changed = new Wakeup();
  /** In the order in which they were asked for last. */
  #entries = new Map<number, Entry>();

  /** `wake` is called when a batch is there. */
  constructor(fetch: Fetch, signal: AbortSignal, wake: () => void) {
    this.#fetch = fetch;
    this.#signal = signal;
    this.#wake = wake;
  }

  /**
   * Those of these batches that are there, up to the first one that is not; the next ones are being fetched, and all
   * others let go. Throws what ended the search for the first.
   */
  ready(batchIds: readonly number[]): Resolved[] {
    this.#keep(batchIds.slice(0, AHEAD_BATCHES_MAX));
    const all: Resolved[] = [];
    for (const { isDone, found, error } of this.#entries.values()) {
      if (error !== undefined && all.length === 0) throw error;
      if (error !== undefined || !isDone) break;
      if (found !== undefined) all.push(found);
    }
    return all;
  }

  /** These are let go: their memory may end. */
  take(batchIds: ReadonlySet<number>): void {
    for (const batchId of batchIds) this.#entries.delete(batchId);
  }

  #keep(batchIds: readonly number[]): void {
    const before = this.#entries;
    this.#entries = new Map();
    let held = 0;
    for (const batchId of batchIds) {
      const known = before.get(batchId);
      held += known?.sizeBytes ?? 0;
      // One that has come in front of others takes their place; what only waits for room has none to give.
      const isKept =
        known !== undefined && (known.sizeBytes === 0 || known.sizeBytes === held || held <= AHEAD_BYTES_MAX);
      const entry: Entry = isKept ? known : { sizeBytes: 0, isDone: false };
      this.#entries.set(batchId, entry);
      if (!isKept) void this.#resolve(batchId, entry);
    }
    this.#changed.wake();
  }

  async #resolve(batchId: number, entry: Entry): Promise<void> {
    try {
      entry.found = await this.#fetch(batchId, (sizeBytes) => this.#room(batchId, entry, sizeBytes));
    } catch (error) {
      entry.error = error;
    }
    entry.isDone = true;
    this.#changed.wake();
    this.#wake();
  }

  async #room(batchId: number, entry: Entry, sizeBytes: number): Promise<void> {
    if (entry.sizeBytes > 0) return; // Tried again after NATS was away.
    for (;;) {
      const { count } = this.#changed;
      if (this.#entries.get(batchId) !== entry) throw new Error(`batch ${batchId} was let go`);
      const all = [...this.#entries.values()];
      if (hasRoom(all.slice(0, all.indexOf(entry)), sizeBytes)) break;
      await this.#changed.wait(count, STREAM_POLL_MS, this.#signal);
      this.#signal.throwIfAborted();
    }
    entry.sizeBytes = Math.max(1, sizeBytes);
    this.#changed.wake();
  }
}
