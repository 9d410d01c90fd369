// The batches behind a place of the trajectory log, fetched before they are asked for: several at once, as many as
// there is room for.
import { AHEAD_BATCHES_MAX, AHEAD_BYTES_MAX, STREAM_POLL_MS } from '../../common/limits.ts';
import { isKept } from '../cursors/lost-end.ts';
import type { Batches, Resolved } from './batches.ts';
import type { Persist } from './persistently.ts';
import type { StreamRequest } from './stream-parts.ts';
import type { Place, StoredGroup, TrajectoryLog } from './trajectory-log.ts';
import { Wakeup } from './wakeup.ts';

export interface AheadParts {
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
}

export interface Ahead {
  /**
   * The batches behind a place that are there, up to the first one that is not; the next ones are being looked for. What
   * is up to it is let go. Throws what ended the search for the first.
   */
  ready(after: Place): Resolved[];
  /** Whether some of the next ones are being fetched. */
  readonly isComing: boolean;
  /** These are let go: their memory may end. */
  take(batchIds: ReadonlySet<number>): void;
}

/** A batch that is there, or is being fetched. */
export interface Held {
  /** Of what it holds or fetches; 0 while it waits for room. */
  sizeBytes: number;
  isDone: boolean;
}

/** Whether a batch may be fetched beside those before it: in their order, and the first one always. */
export function hasRoom(before: readonly Held[], sizeBytes: number): boolean {
  if (!before.every(isPlaced)) return false;
  return fits(
    before.reduce((sum, one) => sum + one.sizeBytes, 0),
    sizeBytes,
  );
}

const isPlaced = ({ sizeBytes, isDone }: Held): boolean => sizeBytes > 0 || isDone;
const fits = (heldBytes: number, sizeBytes: number): boolean =>
  heldBytes === 0 || heldBytes + sizeBytes <= AHEAD_BYTES_MAX;

/** What the reader of the log does. */
interface AheadReader {
  /** Repeats what fails because NATS is away. */
  readonly persist: Persist;
  /** Called when a batch is ready. */
  readonly wake: () => void;
  /** Called where the log has lost the place that is read from, and begins before it. */
  readonly goBack: () => Promise<void>;
}

export function openAhead(
  { trajectories, batches }: AheadParts,
  { taskId, layout }: Pick<StreamRequest, 'taskId' | 'layout'>,
  signal: AbortSignal,
  { persist, wake, goBack }: AheadReader,
): Ahead {
  const source: Source = {
    next: async (after, ended) => {
      for (;;) {
        const { count } = trajectories.published;
        const stored = await persist(() => trajectories.several(after.batchId, taskId, ended));
        // Looked at behind the question: what was found there comes behind that place.
        const isBehind = await persist(() => isKept(trajectories, after, ended));
        if (isBehind && stored.length > 0) return stored;
        if (!isBehind) await goBack();
        await trajectories.published.wait(count, STREAM_POLL_MS, ended);
        ended.throwIfAborted();
      }
    },
    resolve: (stored, room, ended) => persist(() => batches.resolve(stored, layout, ended, room)),
    wake,
  };
  let window: Window | undefined;
  return {
    ready(after) {
      if (window?.covers(after.batchId) !== true) {
        window?.close();
        window = new Window(source, after, signal);
      }
      window.release(after.batchId);
      return window.ready();
    },
    get isComing() {
      return window?.isComing === true;
    },
    take(batchIds) {
      const last = Math.max(...batchIds);
      if (window?.covers(last)) window.release(last);
    },
  };
}

interface Source {
  /** The next ones, at least one. */
  readonly next: (after: Place, signal: AbortSignal) => Promise<readonly StoredGroup[]>;
  readonly resolve: (
    stored: StoredGroup,
    room: (sizeBytes: number) => Promise<void>,
    signal: AbortSignal,
  ) => Promise<Resolved>;
  readonly wake: () => void;
}

interface Entry extends Held {
  readonly batchId: number;
  found?: Resolved;
  error?: unknown;
  /** It waits for room. */
  asks?: { readonly sizeBytes: number; readonly granted: () => void; readonly refused: (why: Error) => void };
}

/** Consecutive batches of the log, in order. */
class Window {
  readonly #source: Source;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  /** Wakes when entries have left. */
  readonly #left = new Wakeup();
  #entries: Entry[] = [];
  /** All batches behind it and up to the last entry are entries. */
  #from: number;
  #error: unknown;

  constructor(source: Source, after: Place, signal: AbortSignal) {
    this.#source = source;
    this.#from = after.batchId;
    this.#signal = AbortSignal.any([signal, this.#stop.signal]);
    this.#signal.addEventListener('abort', () => refuse(this.#entries), { once: true });
    this.#fill(after).catch((error: unknown) => {
      this.#error = error;
      source.wake();
    });
  }

  /** Whether the first batch behind `after` is or will be an entry, and none is fetched for nothing. */
  covers(after: number): boolean {
    return after >= this.#from && after <= (this.#entries.at(-1)?.batchId ?? this.#from);
  }

  release(after: number): void {
    const gone = this.#entries.filter((entry) => entry.batchId <= after);
    this.#from = after;
    if (gone.length === 0) return;
    this.#entries = this.#entries.slice(gone.length);
    refuse(gone);
    this.#left.wake();
    this.#grant();
  }

  ready(): Resolved[] {
    const all: Resolved[] = [];
    for (const { found, error } of this.#entries) {
      if (error !== undefined && all.length === 0) throw error;
      if (found === undefined) return all;
      all.push(found);
    }
    if (all.length === 0 && this.#error !== undefined) throw this.#error;
    return all;
  }

  get isComing(): boolean {
    return this.#entries.some(({ isDone, sizeBytes }) => !isDone && sizeBytes > 0);
  }

  close(): void {
    this.#stop.abort();
  }

  async #fill(after: Place): Promise<void> {
    for (let last = after; ; ) {
      for (const stored of await this.#source.next(last, this.#signal)) {
        last = stored;
        const entry: Entry = { batchId: stored.batchId, sizeBytes: 0, isDone: false };
        this.#entries.push(entry);
        void this.#resolve(entry, stored);
        await this.#notFull();
      }
    }
  }

  async #notFull(): Promise<void> {
    while (this.#entries.length >= AHEAD_BATCHES_MAX) {
      await this.#left.wait(this.#left.count, STREAM_POLL_MS, this.#signal);
      this.#signal.throwIfAborted();
    }
  }

  async #resolve(entry: Entry, stored: StoredGroup): Promise<void> {
    try {
      entry.found = await this.#source.resolve(
        stored,
        (sizeBytes) => this.#room(entry, sizeBytes),
        this.#signal,
      );
    } catch (error) {
      entry.error = error;
    }
    entry.isDone = true;
    this.#grant();
    this.#source.wake();
  }

  async #room(entry: Entry, sizeBytes: number): Promise<void> {
    if (entry.sizeBytes > 0) return; // Tried again after NATS was away.
    this.#signal.throwIfAborted();
    if (entry.batchId <= this.#from) throw letGo(entry);
    await new Promise<void>((granted, refused) => {
      entry.asks = { sizeBytes, granted, refused };
      this.#grant();
    });
  }

  /** Room for those that ask, in their order. */
  #grant(): void {
    let held = 0;
    for (const entry of this.#entries) {
      if (!isPlaced(entry)) {
        const { asks } = entry;
        if (asks === undefined || !fits(held, asks.sizeBytes)) return;
        entry.sizeBytes = Math.max(1, asks.sizeBytes);
        delete entry.asks;
        asks.granted();
      }
      held += entry.sizeBytes;
    }
  }
}

function refuse(entries: readonly Entry[]): void {
  for (const entry of entries) entry.asks?.refused(letGo(entry));
}

const letGo = ({ batchId }: Entry): Error => new Error(`batch ${batchId} was let go`);
