// How long calls were held for pauses, as this process heard of it and by its own steady clock: the clocks of machines may be
// apart, and be set. The policy document tells how long each pause was; when it began and ended is told by its coming.
import type { PauseSpan, Policy } from '../../gen/ts/polar/event/v1/policy_pb.js';

/** Times that are remembered, each of one pause; above, the oldest are joined. The clocks of sessions look back two days. */
const TIMES_MAX = 2_048;

interface Time {
  readonly fromMs: number;
  readonly toMs: number;
}

interface Open {
  readonly pauseId: string;
  /** It began then, and was heard of then. */
  readonly fromMs: number;
  readonly heardMs: number;
  readonly ttlMs: number;
}

export class HeldTimes {
  readonly #steadyMs: () => number;
  /** Oldest first. */
  readonly #times: Time[] = [];
  #open: Open | undefined;
  /** Ends of the pauses that the document named last, which tell them apart; undefined: there was none yet. */
  #ends: ReadonlySet<bigint> | undefined;

  constructor(steadyMs: () => number = () => performance.now()) {
    this.#steadyMs = steadyMs;
  }

  /** The document as it stands now. What the first one says of the time before it is as true as the wall clock `unixMs`. */
  hear(policy: Policy, unixMs: number): void {
    const nowMs = this.#steadyMs();
    const ended = policy.pauses.filter(({ endMs }) => endMs > 0n);
    const isFirst = this.#ends === undefined;
    if (isFirst) this.#begin(ended, nowMs - unixMs);
    else this.#end(ended, nowMs);
    this.#ends = new Set(ended.map(({ endMs }) => endMs));
    if (policy.pauseId !== this.#open?.pauseId) this.#open = openOf(policy, nowMs, isFirst ? unixMs : 0);
  }

  /** Calls are held now. */
  get isHeld(): boolean {
    return this.#open !== undefined;
  }

  /** Milliseconds for which this pause lasts; 0 where it is not known. */
  lastsMs(pauseId: string): number {
    return this.#open?.pauseId === pauseId ? Math.ceil(this.#steadyMs() - this.#open.fromMs) : 0;
  }

  /** Milliseconds until the pause ends by itself; 0 where none is, or its time is over. */
  get leftMs(): number {
    if (this.#open === undefined) return 0;
    return Math.max(0, this.#open.ttlMs - (this.#steadyMs() - this.#open.heardMs));
  }

  /** Of the last so many milliseconds, those in which calls were held. */
  inLast(ms: number): number {
    const nowMs = this.#steadyMs();
    const sinceMs = nowMs - ms;
    let sum = this.#open === undefined ? 0 : nowMs - Math.max(this.#open.fromMs, sinceMs);
    for (let i = this.#times.length - 1; i >= 0; i--) {
      const { fromMs, toMs } = this.#times[i] as Time;
      if (toMs <= sinceMs) break;
      sum += toMs - Math.max(fromMs, sinceMs);
    }
    return sum;
  }

  #begin(ended: readonly PauseSpan[], apartMs: number): void {
    for (const span of ended) {
      const toMs = Number(span.endMs) + apartMs;
      this.#add({ fromMs: toMs - lengthOf(span), toMs });
    }
  }

  /** Those that have ended since the last one was heard: just now, as far as is known, and one after the other. */
  #end(ended: readonly PauseSpan[], nowMs: number): void {
    const since = ended.filter(({ endMs }) => !this.#ends?.has(endMs));
    let toMs = nowMs - since.reduce((sum, span) => sum + lengthOf(span), 0);
    for (const span of since) {
      this.#add({ fromMs: toMs, toMs: toMs + lengthOf(span) });
      toMs += lengthOf(span);
    }
  }

  #add(time: Time): void {
    this.#times.push(time);
    if (this.#times.length <= TIMES_MAX) return;
    const [older, newer] = this.#times as [Time, Time];
    const fromMs = newer.fromMs - (older.toMs - older.fromMs);
    this.#times.splice(0, 2, { fromMs, toMs: newer.toMs });
  }
}

const lengthOf = ({ startMs, endMs }: PauseSpan): number => Math.max(0, Number(endMs - startMs));

/** `unixMs`: the wall clock, where it began before anything was heard; 0: it begins now. */
function openOf({ pauseId, pauses, pauseExpireMs }: Policy, nowMs: number, unixMs: number): Open | undefined {
  const span = pauses.at(-1);
  if (pauseId === '' || span === undefined || span.endMs > 0n) return undefined;
  const ttlMs = Math.max(0, Number(pauseExpireMs - span.startMs));
  const agoMs = unixMs === 0 ? 0 : Math.min(ttlMs, Math.max(0, unixMs - Number(span.startMs)));
  return { pauseId, fromMs: nowMs - agoMs, heardMs: nowMs, ttlMs };
}
