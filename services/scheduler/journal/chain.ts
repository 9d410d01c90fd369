// The state log as one chain: each append names the sequence before it, so that one writer at most can go on.
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { PUBLISH_PAUSE_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { cameSecond, HEADER_MSG_ID, storeFull } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';

/** JetStream's: store only behind this sequence of the stream. */
const HEADER_BEHIND_IN_STREAM = 'Nats-Expected-Last-Sequence';

export class Chain {
  readonly #bus: Bus;
  #seq: number;
  #appending: Promise<unknown> = Promise.resolve();
  #problem: unknown;

  constructor(bus: Bus, lastSeq: number) {
    this.#bus = bus;
    this.#seq = lastSeq;
  }

  /** Sequence of the last commit that is known to be stored. */
  get seq(): number {
    return this.#seq;
  }

  /** Why the append that is on its way has not gone through so far. */
  get problem(): unknown {
    return this.#problem;
  }

  /**
   * Stores one commit behind the last one, trying until NATS takes it: it may be stored already, so it cannot be given up.
   * `id` is its own. Throws STATE_FENCED when another writer has gone on; one call at a time.
   */
  async append(bytes: Uint8Array, id: string, signal: AbortSignal): Promise<number> {
    const appending = this.#append(bytes, id, signal);
    this.#appending = appending.catch(() => {});
    return await appending;
  }

  /** Throws STATE_FENCED when another writer has gone on. */
  async verify(): Promise<void> {
    const stored = await lastSeqOf(this.#bus);
    await this.#appending;
    if (stored > this.#seq) throw fenced(`the state log goes to ${stored}, ours to ${this.#seq}`);
  }

  async #append(bytes: Uint8Array, id: string, signal: AbortSignal): Promise<number> {
    for (let retry = false; ; retry = true) {
      signal.throwIfAborted();
      try {
        const { seq } = await this.#bus.acks.store(subjects.state, bytes, {
          [HEADER_MSG_ID]: id,
          [HEADER_BEHIND_IN_STREAM]: String(this.#seq),
        });
        this.#problem = undefined;
        this.#seq = seq;
        return seq;
      } catch (error) {
        if (cameSecond(error)) {
          // The reply to an earlier try may have been lost: nats-server 2.15 checks the expectation before the id.
          if (retry && (await this.#isOurs(id, signal))) return this.#seq;
          throw fenced((error as Error).message);
        }
        this.#problem = storeFull(STREAMS.state.name, error) ?? error;
      }
      await sleep(PUBLISH_PAUSE_MS, signal);
    }
  }

  async #isOurs(id: string, signal: AbortSignal): Promise<boolean> {
    const next = this.#seq + 1;
    for (;;) {
      signal.throwIfAborted();
      try {
        const stored = await this.#bus.jsm.streams.getMessage(STREAMS.state.name, { seq: next });
        if (stored.header.get(HEADER_MSG_ID) !== id) return false;
        this.#problem = undefined;
        this.#seq = next;
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        this.#problem = error;
      }
      await sleep(PUBLISH_PAUSE_MS, signal);
    }
  }
}

/** The last sequence that the log has, asked of its leader. */
export async function lastSeqOf(bus: Bus): Promise<number> {
  return (await bus.jsm.streams.info(STREAMS.state.name)).state.last_seq;
}

/** Whether a read failed because there is no such message. */
export const isMissing = (error: unknown): boolean =>
  /no message|message not found|404/i.test((error as Error).message);

const fenced = (why: string): PolarError =>
  new PolarError('STATE_FENCED', `another scheduler has taken over: ${why}`);
