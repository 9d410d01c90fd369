// Sessions that wait for a node: by priority, then in the order of their tasks. Sessions that need different backends or
// images wait in queues of their own, so that one which no node can take holds up no other.
import { Heap } from './heap.ts';

export interface QueueItem {
  readonly sessionId: string;
  readonly taskId: string;
  readonly sampleIndex: number;
  /** Higher is sooner. */
  readonly priority: number;
  /** Of its task; lower is sooner. */
  readonly order: number;
  /** Backend and image, see `needOf`. */
  readonly need: string;
  /** Unix time in milliseconds. */
  readonly notBeforeMs: number;
}

interface Entry extends QueueItem {
  gone: boolean;
}

/** Entries that are gone and still in a heap, before the heaps are made anew. */
const GONE_MAX = 1_024;

export const goesBefore = (a: QueueItem, b: QueueItem): boolean =>
  a.priority !== b.priority
    ? a.priority > b.priority
    : a.order !== b.order
      ? a.order < b.order
      : a.sampleIndex < b.sampleIndex;

const isDueBefore = (a: Entry, b: Entry): boolean => a.notBeforeMs < b.notBeforeMs;

export class DispatchQueue {
  readonly #entries = new Map<string, Entry>();
  readonly #due = new Map<string, Heap<Entry>>();
  #later = new Heap<Entry>(isDueBefore);
  #gone = 0;

  /** Sessions that wait, those that may not go yet included. */
  get size(): number {
    return this.#entries.size;
  }

  push(item: QueueItem): void {
    this.drop(item.sessionId);
    const entry = { ...item, gone: false };
    this.#entries.set(item.sessionId, entry);
    this.#later.push(entry);
  }

  /** The session does not wait any more. */
  drop(sessionId: string): void {
    const entry = this.#entries.get(sessionId);
    if (entry === undefined) return;
    entry.gone = true;
    this.#entries.delete(sessionId);
    if (++this.#gone > GONE_MAX && this.#gone > this.#entries.size) this.#sweep();
  }

  /** Takes the first session that may go now and whose need `fits`; undefined when there is none. */
  take(nowMs: number, fits: (need: string) => boolean): QueueItem | undefined {
    this.#release(nowMs);
    let best: Heap<Entry> | undefined;
    for (const [need, heap] of this.#due) {
      while (heap.top?.gone === true) this.#discard(heap);
      if (heap.top === undefined) this.#due.delete(need);
      else if (fits(need) && (best?.top === undefined || goesBefore(heap.top, best.top))) best = heap;
    }
    const entry = best?.pop();
    if (entry !== undefined) this.#entries.delete(entry.sessionId);
    return entry;
  }

  #release(nowMs: number): void {
    for (let next = this.#later.top; next !== undefined; next = this.#later.top) {
      if (next.gone) {
        this.#discard(this.#later);
        continue;
      }
      if (next.notBeforeMs > nowMs) return;
      this.#later.pop();
      let heap = this.#due.get(next.need);
      if (heap === undefined) {
        heap = new Heap<Entry>(goesBefore);
        this.#due.set(next.need, heap);
      }
      heap.push(next);
    }
  }

  #discard(heap: Heap<Entry>): void {
    heap.pop();
    this.#gone--;
  }

  #sweep(): void {
    this.#due.clear();
    this.#later = new Heap(isDueBefore, this.#entries.values());
    this.#gone = 0;
  }
}
