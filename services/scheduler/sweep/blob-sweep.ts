// Removes blobs that nothing names any more (ADR 34): trajectories of attempts that were replaced, files of tasks that have
// left the archive, what stood for messages that are gone. The scheduler that leads does it: it alone knows the state.
import { sleep } from '../../common/clock.ts';
import { asPolarError } from '../../common/errors.ts';
import { removeOldBlob } from '../../common/nats/blobs.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { walk } from '../../common/nats/walk.ts';
import type { SchedulerContext } from '../context.ts';
import { blobsSwept, sweepFailed } from '../events.ts';
import { References } from './references.ts';

/** From the start to the first sweep, and between two. */
const SWEEP_FIRST_MS = 600_000;
const SWEEP_PAUSE_MS = 3_600_000;
/** A blob that was put later may yet be named: what names it is stored right behind it, or it is put again. */
const GRACE_MS = 3_600_000;
/** Messages of blobs that one sweep looks at; the next one goes on behind them. */
const LOOKED_AT_MAX = 100_000;
/** Blobs removed at once. */
const REMOVALS_AT_ONCE = 8;

const STREAM = STREAMS.blobs.name;

export interface SweepTimes {
  readonly firstMs?: number;
  readonly pauseMs?: number;
  readonly graceMs?: number;
}

/** Sweeps now and then, until the context's signal aborts. */
export async function sweepBlobs(ctx: SchedulerContext): Promise<void> {
  const { signal, log } = ctx;
  const { firstMs = SWEEP_FIRST_MS, pauseMs = SWEEP_PAUSE_MS } = ctx.sweepTimes;
  const sweeper = new BlobSweep(ctx);
  for (let waitMs = firstMs; ; waitMs = pauseMs) {
    try {
      const removed = await sweeper.sweep();
      if (removed > 0) blobsSwept(log, removed);
    } catch (error) {
      if (!signal.aborted) sweepFailed(log, asPolarError(error));
    }
    await sleep(waitMs, signal);
    if (signal.aborted) return;
  }
}

interface Old {
  readonly digests: Set<string>;
  /** They were put last up to this sequence of POLAR_BLOBS. */
  readonly toSeq: number;
}

class BlobSweep {
  readonly #ctx: SchedulerContext;
  readonly #references: References;
  /** The last sequence at the time of the sweep before; 0: there was none. */
  #knownTo = 0;
  /** Where the next sweep begins. */
  #from = 1;

  constructor(ctx: SchedulerContext) {
    const { bus, blobs, stateLog } = ctx;
    this.#ctx = ctx;
    this.#references = new References({ bus, blobs, ...stateLog });
  }

  /** Returns how many blobs are gone. The first one only looks how far the stream goes. */
  async sweep(): Promise<number> {
    const { bus, lease, signal } = this.#ctx;
    const { state, ts = state.last_ts } = await bus.jsm.streams.info(STREAM);
    const { digests, toSeq } = await this.#old(Date.parse(ts));
    this.#knownTo = state.last_seq;
    if (digests.size > 0) await this.#references.takeFrom(digests, signal);
    // All that was read above was the state: nobody else led meanwhile.
    await lease.confirmed(signal);
    let removed = 0;
    const left = digests.values();
    const remove = async (): Promise<void> => {
      for (const digest of left) {
        signal.throwIfAborted();
        if (await removeOldBlob(bus, digest, toSeq + 1, signal)) removed++;
      }
    };
    await Promise.all(Array.from({ length: REMOVALS_AT_ONCE }, remove));
    return removed;
  }

  /**
   * Blobs that were there at the sweep before and are older than the grace by the clock of NATS. Both must be: that clock may
   * be set, and after a night that all machines slept everything is old by it.
   */
  async #old(nowMs: number): Promise<Old> {
    const { bus, signal, sweepTimes } = this.#ctx;
    const beforeMs = nowMs - (sweepTimes.graceMs ?? GRACE_MS);
    const digests = new Set<string>();
    let toSeq = 0;
    let looked = 0;
    if (this.#knownTo === 0) return { digests, toSeq };
    const what = { stream: STREAM, from: this.#from, headersOnly: true };
    this.#from = 1;
    for await (const { seq, subject, info } of walk(bus, what, signal)) {
      if (seq > this.#knownTo || info.timestampNanos / 1e6 > beforeMs) break;
      digests.add(subject.split('.').at(-2) ?? '');
      toSeq = seq;
      if (++looked < LOOKED_AT_MAX) continue;
      this.#from = seq + 1;
      break;
    }
    return { digests, toSeq };
  }
}
