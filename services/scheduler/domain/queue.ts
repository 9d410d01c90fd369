// Sessions that wait for a node. Whose turn it is between named queues is told by their shares; inside a queue it goes by
// rank. Sessions that need different backends or images, or lost attempts on different nodes, wait in heaps of their own, so
// that one which no node can take holds up no other; those of a task that has as many as it may run wait aside.
import { PRIORITY_AGE_STEP_MS } from '../../common/limits.ts';
import { Heap } from './heap.ts';
import { DEFAULT_QUEUE, isAtCap, Shares } from './shares.ts';

export interface QueueItem {
  readonly sessionId: string;
  readonly taskId: string;
  readonly sampleIndex: number;
  /** Name of its queue. */
  readonly queue: string;
  /** See `rankOf`; lower is sooner. */
  readonly rank: number;
  /** Of its task; lower is sooner among equal ranks. */
  readonly order: number;
  /** Sessions of its task that may run at once; 0 = no cap. */
  readonly taskCap: number;
  /** Backend and image, see `needOf`. */
  readonly need: string;
  /** Nodes that it goes to only where no other fits, see `lostOn` of placement.ts. */
  readonly lostOn: readonly string[];
  /** Unix time in milliseconds. */
  readonly notBeforeMs: number;
}

interface Entry extends QueueItem {
  gone: boolean;
}

/** No session is kept back for longer: what seems to be was kept back before the clock was put back. */
const KEPT_BACK_MS_MAX = 60_000;

/** Entries that are gone and still in a heap, before the heaps are made anew. */
const GONE_MAX = 1_024;

/** A point of priority is worth as much as having been submitted earlier by the step, so nothing starves. */
export const rankOf = (submitMs: number, priority: number): number =>
  submitMs - priority * PRIORITY_AGE_STEP_MS;

export const goesBefore = (a: QueueItem, b: QueueItem): boolean =>
  a.rank !== b.rank
    ? a.rank < b.rank
    : a.order !== b.order
      ? a.order < b.order
      : a.sampleIndex < b.sampleIndex;

const laneOf = ({ queue, need }: QueueItem): string => `${queue}\n${need}`;

/** The first of a sorted lane that `item` goes before. */
function firstBehind(lane: readonly QueueItem[], item: QueueItem): QueueItem | undefined {
  let [from, to] = [0, lane.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (goesBefore(item, lane[middle] as QueueItem)) to = middle;
    else from = middle + 1;
  }
  return lane[from];
}

const isDueBefore = (a: Entry, b: Entry): boolean => a.notBeforeMs < b.notBeforeMs;

/** Sessions of one heap may go to the same nodes. */
const heapOf = ({ need, lostOn }: QueueItem): string =>
  lostOn.length === 0 ? need : [need, ...lostOn].join('\n');

/** What may go now, of one queue or task, by `heapOf`. */
type Lane = Map<string, Heap<Entry>>;

function inLane(lane: Lane, entry: Entry): Heap<Entry> {
  const key = heapOf(entry);
  const heap = lane.get(key) ?? new Heap<Entry>(goesBefore);
  lane.set(key, heap);
  return heap;
}

export class DispatchQueue {
  readonly shares: Shares;
  readonly #entries = new Map<string, Entry>();
  readonly #lanes = new Map<string, Lane>();
  #later = new Heap<Entry>(isDueBefore);
  /** Entries of tasks at their cap, by task. */
  readonly #aside = new Map<string, Lane>();
  /** Sessions from dispatch to the end of their run, by task; and the task of each. */
  readonly #runningOf = new Map<string, number>();
  readonly #taskOf = new Map<string, string>();
  #gone = 0;

  constructor(shares: Shares = new Shares()) {
    this.shares = shares;
  }

  /** Sessions that wait, those that may not go yet included. */
  get size(): number {
    return this.#entries.size;
  }

  get(sessionId: string): QueueItem | undefined {
    return this.#entries.get(sessionId);
  }

  /** It waits, and nothing keeps it back but that no node takes it. */
  isDue(sessionId: string, nowMs: number): boolean {
    const item = this.#entries.get(sessionId);
    if (item === undefined || item.notBeforeMs > nowMs || isAtCap(this.shares.of(item.queue))) return false;
    return item.taskCap === 0 || this.running(item.taskId) < item.taskCap;
  }

  push(item: QueueItem): void {
    this.drop(item.sessionId);
    const entry = { ...item, gone: false };
    this.#entries.set(item.sessionId, entry);
    this.#later.push(entry);
    this.shares.wait(item.queue);
  }

  /** The session does not wait any more. */
  drop(sessionId: string): void {
    const entry = this.#entries.get(sessionId);
    if (entry === undefined) return;
    entry.gone = true;
    this.#remove(entry);
    // It may be one that was brought back for a free slot of its task.
    if (entry.taskCap > 0) this.#bringBack(entry.taskId);
    if (++this.#gone > GONE_MAX && this.#gone > this.#entries.size) this.#sweep();
  }

  /** A session was dispatched. */
  started(sessionId: string, { taskId, queue }: Pick<QueueItem, 'taskId' | 'queue'>): void {
    if (this.#taskOf.has(sessionId)) return;
    this.#taskOf.set(sessionId, taskId);
    this.#runningOf.set(taskId, this.running(taskId) + 1);
    this.shares.start(sessionId, queue);
  }

  /** Its run ended, or never began: then without `seconds`. */
  ended(sessionId: string, seconds: number | undefined): void {
    const taskId = this.#taskOf.get(sessionId);
    if (taskId === undefined) return;
    this.#taskOf.delete(sessionId);
    const running = this.running(taskId) - 1;
    if (running === 0) this.#runningOf.delete(taskId);
    else this.#runningOf.set(taskId, running);
    this.shares.end(sessionId, seconds);
    this.#bringBack(taskId);
  }

  /** Sessions of a task from dispatch to the end of their run. */
  running(taskId: string): number {
    return this.#runningOf.get(taskId) ?? 0;
  }

  /** By session id, of each of `items`: how many of the same queue and need go before it. One look at all that wait. */
  ahead(items: readonly QueueItem[]): ReadonlyMap<string, number> {
    const byLane = Map.groupBy(items, laneOf);
    const counts = new Map<string, number>();
    for (const lane of byLane.values()) lane.sort((a, b) => (goesBefore(a, b) ? -1 : 1));
    for (const entry of this.#entries.values()) {
      const first = firstBehind(byLane.get(laneOf(entry)) ?? [], entry);
      // Counted at the first that it goes before: those behind that one get it by the sum.
      if (first !== undefined) counts.set(first.sessionId, (counts.get(first.sessionId) ?? 0) + 1);
    }
    for (const lane of byLane.values()) {
      let sum = 0;
      for (const { sessionId } of lane) {
        sum += counts.get(sessionId) ?? 0;
        counts.set(sessionId, sum);
      }
    }
    return counts;
  }

  /** Takes the first session that may go now and that `fits`: asked once for all that wait in one heap. */
  take(nowMs: number, fits: (item: QueueItem) => boolean): QueueItem | undefined {
    this.#release(nowMs);
    let best: { heap: Heap<Entry>; top: Entry; tag: number } | undefined;
    for (const [name, lane] of this.#lanes) {
      const share = this.shares.of(name);
      if (isAtCap(share)) continue;
      const heap = this.#firstOf(name, lane, fits);
      if (heap?.top === undefined) continue;
      const { top } = heap;
      const wins = best === undefined || share.tag < best.tag;
      if (wins || (share.tag === best?.tag && goesBefore(top, best.top)))
        best = { heap, top, tag: share.tag };
    }
    const entry = best?.heap.pop();
    if (entry !== undefined) this.#remove(entry);
    return entry;
  }

  #firstOf(name: string, lane: Lane, fits: (item: QueueItem) => boolean): Heap<Entry> | undefined {
    let best: Heap<Entry> | undefined;
    for (const [key, heap] of lane) {
      this.#clearTop(heap);
      if (heap.top === undefined) lane.delete(key);
      else if (fits(heap.top) && (best?.top === undefined || goesBefore(heap.top, best.top))) best = heap;
    }
    if (lane.size === 0) this.#lanes.delete(name);
    return best;
  }

  /** Until the top is one that waits and whose task may run one more. */
  #clearTop(heap: Heap<Entry>): void {
    for (let { top } = heap; top !== undefined; top = heap.top) {
      if (top.gone) this.#discard(heap);
      else if (top.taskCap > 0 && this.running(top.taskId) >= top.taskCap) this.#setAside(heap, top);
      else return;
    }
  }

  #setAside(heap: Heap<Entry>, entry: Entry): void {
    heap.pop();
    const aside: Lane = this.#aside.get(entry.taskId) ?? new Map();
    this.#aside.set(entry.taskId, aside);
    inLane(aside, entry).push(entry);
  }

  /** For the slot of its task that became free, one of each heap: no node may fit the first of all. */
  #bringBack(taskId: string): void {
    const aside = this.#aside.get(taskId);
    if (aside === undefined) return;
    for (const [key, heap] of aside) {
      while (heap.top?.gone === true) this.#discard(heap);
      const entry = heap.pop();
      if (entry !== undefined) this.#heap(entry).push(entry);
      if (heap.size === 0) aside.delete(key);
    }
    if (aside.size === 0) this.#aside.delete(taskId);
  }

  #release(nowMs: number): void {
    for (let next = this.#later.top; next !== undefined; next = this.#later.top) {
      if (next.gone) {
        this.#discard(this.#later);
        continue;
      }
      if (next.notBeforeMs > nowMs && next.notBeforeMs <= nowMs + KEPT_BACK_MS_MAX) return;
      this.#later.pop();
      this.#heap(next).push(next);
    }
  }

  #heap(entry: Entry): Heap<Entry> {
    const { queue } = entry;
    let lane = this.#lanes.get(queue);
    if (lane === undefined) {
      lane = new Map();
      this.#lanes.set(queue, lane);
      this.shares.arrive(queue);
    }
    return inLane(lane, entry);
  }

  #remove({ sessionId, queue }: Entry): void {
    this.#entries.delete(sessionId);
    this.shares.leave(queue);
  }

  #discard(heap: Heap<Entry>): void {
    heap.pop();
    this.#gone--;
  }

  #sweep(): void {
    this.#lanes.clear();
    this.#aside.clear();
    this.#later = new Heap(isDueBefore, this.#entries.values());
    this.#gone = 0;
  }
}

/** What a task without a queue waits in: tasks of before there were queues have none in their record. */
export const queueOf = (spec: { readonly queue: string }): string => spec.queue || DEFAULT_QUEUE;
