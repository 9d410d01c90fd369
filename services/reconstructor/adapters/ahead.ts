// The batches behind a place of the trajectory log, fetched before they are asked for: several at once, as many as
// there is room for.
import { AHEAD_BATCHES_MAX, AHEAD_BYTES_MAX, STREAM_POLL_MS } from '../../common/limits.ts';
import type { Batches, Resolved } from './batches.ts';
import type { StoredGroup, TrajectoryLog } from './trajectory-log.ts';
import { Wakeup } from './wakeup.ts';

export interface AheadParts {
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
}

export interface Ahead {
  /**
   * The batches behind `after` that are there, up to the first one that is not; the next ones are being looked for. What
   * is up to `after` is let go. Throws what ended the search for the first.
   */
  ready(after: number): Resolved[];
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
  if (!before.every((one) => one.sizeBytes > 0 || one.isDone)) return false;
  const held = before.reduce((sum, one) => sum + one.sizeBytes, 0);
  return held === 0 || held + sizeBytes <= AHEAD_BYTES_MAX;
}

/** `persist` repeats what fails because NATS is away; `wake` is called when a batch is ready. Empty task: all. */
export function openAhead(
  { trajectories, batches }: AheadParts,
  taskId: string,
  signal: AbortSignal,
  persist: <T>(attempt: () => Promise<T>) => Promise<T>,
  wake: () => void,
): Ahead {
  const source: Source = {
    next: async (after, ended) => {
      for (;;) {
        const { count } = trajectories.published;
        const stored = await persist(() => trajectories.after(after, taskId, ended));
        if (stored !== undefined) return stored;
        await trajectories.published.wait(count, STREAM_POLL_MS, ended);
        ended.throwIfAborted();
      }
    },
    resolve: (stored, room, ended) => persist(() => batches.resolve(stored, ended, room)),
    wake,
  };
  let window: Window | undefined;
  return {
    ready(after) {
      if (window?.covers(after) !== true) {
        window?.close();
        window = new Window(source, after, signal);
      }
      window.release(after);
      return window.ready();
    },
    take(batchIds) {
      const last = Math.max(...batchIds);
      if (window?.covers(last)) window.release(last);
    },
  };
}

interface Source {
  readonly next: (after: number, signal: AbortSignal) => Promise<StoredGroup>;
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
}

/** Consecutive batches of the log, in order. */
class Window {
  readonly #source: Source;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #changed = new Wakeup();
  #entries: Entry[] = [];
  /** All batches behind it and up to the last entry are entries. */
  #from: number;
  #error: unknown;

  constructor(source: Source, after: number, signal: AbortSignal) {
    this.#source = source;
    this.#from = after;
    this.#signal = AbortSignal.any([signal, this.#stop.signal]);
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
    const left = this.#entries.filter((entry) => entry.batchId > after);
    if (left.length < this.#entries.length) this.#changed.wake();
    this.#entries = left;
    this.#from = after;
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

  close(): void {
    this.#stop.abort();
  }

  async #fill(after: number): Promise<void> {
    for (let last = after; ; ) {
      const stored = await this.#source.next(last, this.#signal);
      last = stored.batchId;
      const entry: Entry = { batchId: last, sizeBytes: 0, isDone: false };
      this.#entries.push(entry);
      void this.#resolve(entry, stored);
      await this.#until(() => this.#entries.length < AHEAD_BATCHES_MAX);
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
    this.#source.wake();
  }

  async #room(entry: Entry, sizeBytes: number): Promise<void> {
    if (entry.sizeBytes > 0) return; // Tried again after NATS was away.
    const before = (): Entry[] => this.#entries.slice(0, Math.max(0, this.#entries.indexOf(entry)));
    await this.#until(() => hasRoom(before(), sizeBytes));
    entry.sizeBytes = Math.max(1, sizeBytes);
    this.#changed.wake();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      const { count } = this.#changed;
      await this.#changed.wait(count, STREAM_POLL_MS, this.#signal);
      this.#signal.throwIfAborted();
    }
  }
}
