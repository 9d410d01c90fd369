// The attempts that this proxy knows: loaded from their records at the first call, dropped when they end.
import { abortable } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import {
  CALLS_IN_FLIGHT_MAX,
  CALLS_IN_FLIGHT_PER_SESSION_MAX,
  CLOSED_ATTEMPTS_KEPT_MAX,
} from '../../common/limits.ts';
import type { AttemptState } from '../domain/attempt-state.ts';
import type { Bytes } from '../domain/bytes.ts';
import { KnownBodies } from '../domain/known-bodies.ts';
import { Attempt, type Closed } from './attempt.ts';
import type { AttemptKey, RecordLog } from './record-log.ts';
import { StoredMessages } from './stored-messages.ts';

/** Requests of one attempt at once, from their heads on: calls, those that share one, and questions; above: 429. */
export const REQUESTS_PER_SESSION_MAX = CALLS_IN_FLIGHT_PER_SESSION_MAX * 2;

const nameOf = (key: AttemptKey): string => `${key.sessionId}.${key.attempt}`;

interface Opened {
  readonly attempt: Promise<Attempt>;
  /** Set as soon as it is there. */
  now: Attempt | undefined;
}

export class Attempts {
  /** Request bodies of the attempts that are open. */
  readonly bodies = new KnownBodies();
  readonly stored: StoredMessages;
  readonly #log: RecordLog;
  readonly #open = new Map<string, Opened>();
  /** Oldest first. */
  readonly #closed = new Map<string, Promise<Closed>>();
  #callsInFlight = 0;
  /** Requests of each attempt that has any. */
  readonly #requests = new Map<string, number>();

  constructor(log: RecordLog) {
    this.#log = log;
    this.stored = new StoredMessages(log);
  }

  /** The attempt, its tree rebuilt where this process has not seen it. Throws SESSION_CLOSED, NATS_UNAVAILABLE. */
  open(key: AttemptKey): Promise<Attempt> {
    const name = nameOf(key);
    if (this.#closed.has(name)) throw new PolarError('SESSION_CLOSED', 'the session is closed');
    return this.#opened(name, key, () => this.#log.open(key));
  }

  #opened(name: string, key: AttemptKey, read: () => Promise<AttemptState>): Promise<Attempt> {
    const known = this.#open.get(name);
    if (known !== undefined) return known.attempt;
    const attempt = read().then((state) => new Attempt(key, this.#log, state));
    const opened: Opened = { attempt, now: undefined };
    this.#open.set(name, opened);
    attempt.then(
      (one) => (opened.now = one),
      () => this.#open.delete(name),
    );
    return attempt;
  }

  /** What the next body of the attempt may begin as, as far as it is known without a wait. */
  bodiesOf(key: AttemptKey): readonly Bytes[] {
    const attempt = this.#open.get(nameOf(key))?.now;
    return attempt === undefined ? [] : this.bodies.of(attempt);
  }

  /** Count a call of any session while it is handled. Throws CALLS_IN_FLIGHT_LIMIT. */
  enter(): Disposable {
    if (this.#callsInFlight >= CALLS_IN_FLIGHT_MAX) {
      const message = `the proxy has ${CALLS_IN_FLIGHT_MAX} calls in flight`;
      throw new PolarError('CALLS_IN_FLIGHT_LIMIT', message, { retryAfterMs: 1_000 });
    }
    this.#callsInFlight++;
    return { [Symbol.dispose]: () => void this.#callsInFlight-- };
  }

  /**
   * Count a request of an attempt while it is handled, so that no session takes what all share: the proxy's calls, and
   * memory for bodies. Throws CALLS_IN_FLIGHT_LIMIT.
   */
  enterFor(key: AttemptKey): Disposable {
    const name = nameOf(key);
    const requests = this.#requests.get(name) ?? 0;
    if (requests >= REQUESTS_PER_SESSION_MAX) {
      const message = `the session has ${REQUESTS_PER_SESSION_MAX} requests in flight`;
      throw new PolarError('CALLS_IN_FLIGHT_LIMIT', message, { retryAfterMs: 1_000 });
    }
    this.#requests.set(name, requests + 1);
    return { [Symbol.dispose]: () => this.#leave(name) };
  }

  #leave(name: string): void {
    const left = (this.#requests.get(name) ?? 1) - 1;
    if (left > 0) this.#requests.set(name, left);
    else this.#requests.delete(name);
  }

  /** End the attempt for good; the same answer again at each repetition. Throws the signal's reason. */
  async close(key: AttemptKey, signal: AbortSignal): Promise<Closed> {
    const name = nameOf(key);
    let closed = this.#closed.get(name);
    if (closed === undefined) {
      // One that is not open has made no calls, or was closed long ago: its records tell.
      closed = this.#opened(name, key, () => this.#log.load(key)).then((attempt) => this.#end(attempt));
      this.#keep(name, closed);
    }
    return await abortable(closed, signal);
  }

  async #end(attempt: Attempt): Promise<Closed> {
    const closed = await attempt.close();
    this.bodies.forget(attempt);
    this.stored.forget(attempt);
    return closed;
  }

  #keep(name: string, closed: Promise<Closed>): void {
    this.#closed.set(name, closed);
    const forget = (): void => {
      this.#closed.delete(name);
    };
    closed.then(() => this.#open.delete(name), forget);
    const [oldest] = this.#closed.keys();
    if (this.#closed.size > CLOSED_ATTEMPTS_KEPT_MAX && oldest !== undefined) this.#closed.delete(oldest);
  }

  /** The attempt's capability is gone: abort what is in flight and forget it. */
  async revoke(key: AttemptKey): Promise<void> {
    const name = nameOf(key);
    const opened = this.#open.get(name);
    if (opened === undefined) return;
    const attempt = await opened.attempt.catch(() => undefined);
    if (attempt !== undefined) await this.#end(attempt);
    if (this.#open.get(name) === opened) this.#open.delete(name);
  }

  /** Resolves when no call of any attempt is in flight. */
  async settled(): Promise<void> {
    const open = await Promise.allSettled(Array.from(this.#open.values(), ({ attempt }) => attempt));
    await Promise.allSettled(open.map((one) => (one.status === 'fulfilled' ? one.value.close() : undefined)));
  }
}
