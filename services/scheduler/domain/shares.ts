// How queues share run time: start-time fair queueing. Each queue has a tag in run-seconds per weight, and the one with the
// lowest tag starts next. A start is charged with the queue's mean run time; what was really used replaces the charge at
// the end. A queue in which nothing can go earns no credit meanwhile, and one that no free node fits a bounded one.
import type { Used } from './usage.ts';

export const DEFAULT_QUEUE = 'default';

export interface QueueRule {
  readonly name: string;
  readonly weight: number;
  /** 0 = no cap. */
  readonly maxRunning: number;
}

/** What a queue has used so far. */
export type UsedBefore = (queue: string) => Used;

export interface Share extends QueueRule {
  /** Sessions that wait for a node, those that may not go yet included. */
  waiting: number;
  /** Sessions from dispatch to the end of their run. */
  running: number;
  /** Of runs that have ended. */
  runSeconds: number;
  runs: number;
  tag: number;
  meanSeconds: number;
}

/** What a queue may be behind the others, in run-seconds, because no free node has what its sessions need. */
const CREDIT_SECONDS_MAX = 3_600;
/** One run has at least this part in the mean of its queue; the first ones have equal parts. */
const MEAN_PART_MIN = 1 / 16;
/** Mean run time of a queue that nothing is known of. */
const FIRST_MEAN_SECONDS = 1;

interface Charge {
  readonly share: Share;
  readonly seconds: number;
}

export class Shares {
  readonly #shares = new Map<string, Share>();
  readonly #named = new Set<string>();
  /** By session. */
  readonly #charges = new Map<string, Charge>();
  /** Virtual time: the tag that started last. */
  #now = 0;
  /** Sessions that wait or run. */
  #live = 0;
  readonly #usedBefore: UsedBefore;

  /** `usedBefore` tells what is known of a queue that is not here yet: from before a take-over, or from its last time. */
  constructor(rules: readonly QueueRule[] = [], usedBefore: UsedBefore = () => ({ runMs: 0, runs: 0 })) {
    this.#usedBefore = usedBefore;
    for (const rule of rules) {
      this.#named.add(rule.name);
      this.#shares.set(rule.name, this.#newShare(rule));
    }
  }

  /** Queues that are named by rule or in use, by name. */
  get all(): Share[] {
    return [...this.#shares.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** One that no rule names has weight 1 and no cap. */
  of(name: string): Share {
    let share = this.#shares.get(name);
    if (share === undefined) {
      share = this.#newShare({ name, weight: 1, maxRunning: 0 });
      this.#shares.set(name, share);
    }
    return share;
  }

  /** A session came to wait. */
  wait(name: string): void {
    this.of(name).waiting++;
    this.#live++;
  }

  /** Something of the queue can go, and nothing could before. */
  arrive(name: string): void {
    const share = this.of(name);
    share.tag = Math.max(share.tag, this.#now);
  }

  /** A session does not wait any more. */
  leave(name: string): void {
    this.of(name).waiting--;
    this.#gone();
  }

  start(sessionId: string, name: string): void {
    if (this.#charges.has(sessionId)) return;
    const share = this.of(name);
    share.tag = Math.max(share.tag, this.#now - CREDIT_SECONDS_MAX / share.weight);
    this.#now = Math.max(this.#now, share.tag);
    this.#charges.set(sessionId, { share, seconds: share.meanSeconds });
    share.running++;
    this.#live++;
    share.tag += share.meanSeconds / share.weight;
    this.#forget();
  }

  /** `seconds` of run time were used; undefined where it never ran, which says nothing about the mean. */
  end(sessionId: string, seconds: number | undefined): void {
    const charge = this.#charges.get(sessionId);
    if (charge === undefined) return;
    const { share } = charge;
    this.#charges.delete(sessionId);
    share.running--;
    share.tag += ((seconds ?? 0) - charge.seconds) / share.weight;
    if (seconds !== undefined) {
      share.runSeconds += seconds;
      share.runs++;
      share.meanSeconds += (seconds - share.meanSeconds) * Math.max(MEAN_PART_MIN, 1 / share.runs);
    }
    this.#gone();
  }

  /** It owes nothing and is owed nothing, be it here for the first time or again. */
  #newShare(rule: QueueRule): Share {
    const { runMs, runs } = this.#usedBefore(rule.name);
    return {
      ...rule,
      waiting: 0,
      running: 0,
      runSeconds: runMs / 1000,
      runs,
      tag: this.#now,
      meanSeconds: runs === 0 ? FIRST_MEAN_SECONDS : runMs / 1000 / runs,
    };
  }

  /** When nothing waits or runs any more, nobody owes anything. */
  #gone(): void {
    if (--this.#live > 0) return;
    for (const { tag } of this.#shares.values()) this.#now = Math.max(this.#now, tag);
    this.#forget();
  }

  /** Queues of no rule that are idle and owe nothing. */
  #forget(): void {
    for (const { name, waiting, running, tag } of this.#shares.values()) {
      if (waiting + running === 0 && tag <= this.#now && !this.#named.has(name)) this.#shares.delete(name);
    }
  }
}

export const isAtCap = ({ running, maxRunning }: Share): boolean => maxRunning > 0 && running >= maxRunning;
