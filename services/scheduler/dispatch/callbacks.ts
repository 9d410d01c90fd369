// Tells a task's callback_url that its group is announced: again after a pause until the receiver takes it or its tries are
// spent, and after a take-over anew. What became of it is committed, so it is told at least once and then no more.
import { createHmac } from 'node:crypto';
import { Semaphore, sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import {
  CALLBACK_PAUSE_MS,
  CALLBACK_TIMEOUT_MS,
  CALLBACK_TRIES_MAX,
  CALLBACKS_AT_ONCE_MAX,
} from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { CallbackHosts } from '../admission/callback-hosts.ts';
import { callbackId } from '../domain/callback.ts';
import { callbackOfGroup, type TaskState } from '../domain/state.ts';
import * as events from '../events.ts';
import type { Journal } from '../journal/journal.ts';
import { postCallback } from './callback-post.ts';

/** At one receiver at once: one that does not answer holds up nobody else's. */
const CALLBACKS_AT_RECEIVER_MAX = 4;

export interface CallbacksOptions {
  readonly journal: Journal;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Key of the signatures; without it there are none. */
  readonly secret: string | undefined;
  readonly hosts: CallbackHosts;
  /** Pause after the first failed try. */
  readonly pauseMs?: number | undefined;
}

interface Callback {
  readonly url: string;
  readonly id: string;
  readonly body: string;
}

export class Callbacks {
  readonly #options: CallbacksOptions;
  readonly #slots = new Semaphore(CALLBACKS_AT_ONCE_MAX);
  /** By host and port, of receivers that are told something, or are to be. */
  readonly #receivers = new Map<string, { slots: Semaphore; users: number }>();
  /** By id. */
  readonly #running = new Map<string, Promise<void>>();

  constructor(options: CallbacksOptions) {
    this.#options = options;
  }

  /** To be called when a group was announced, durably, and at a take-over. */
  check({ record: { taskId }, spec, owed }: TaskState): void {
    for (const [groupId, body] of owed) {
      const id = callbackId(taskId, groupId);
      if (this.#running.has(id)) continue;
      const telling = this.#tell({ url: spec.callbackUrl, id, body })
        .then((error) => this.#done(taskId, groupId, error))
        // The service stops or the log is closed: the next one tells it.
        .catch(() => {})
        .finally(() => this.#running.delete(id));
      this.#running.set(id, telling);
    }
  }

  async #done(taskId: string, groupId: string, error: PolarError | undefined): Promise<void> {
    const { journal, log } = this.#options;
    const id = callbackId(taskId, groupId);
    if (error === undefined) events.callbackDelivered(log, id);
    else events.callbackGivenUp(log, id, error);
    await journal.propose(callbackOfGroup(taskId, groupId, error === undefined));
  }

  /** Resolves when none is on its way, once the signal has aborted. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }

  /** Why it was given up; undefined where it was taken. Throws when the signal aborts. */
  async #tell(callback: Callback): Promise<PolarError | undefined> {
    const { signal, log, pauseMs = CALLBACK_PAUSE_MS } = this.#options;
    for (let tries = 1; ; tries++) {
      const error = await this.#inTurn(callback.url, () => this.#tryOnce(callback));
      signal.throwIfAborted();
      if (error === undefined || !error.retryable || tries === CALLBACK_TRIES_MAX) return error;
      events.callbackFailed(log, callback.id, error);
      await sleep(pauseMs * 2 ** (tries - 1), signal);
      signal.throwIfAborted();
    }
  }

  async #inTurn<T>(url: string, task: () => Promise<T>): Promise<T> {
    const host = URL.parse(url)?.host ?? '';
    const receiver = this.#receivers.get(host) ?? {
      slots: new Semaphore(CALLBACKS_AT_RECEIVER_MAX),
      users: 0,
    };
    this.#receivers.set(host, receiver);
    receiver.users++;
    try {
      return await receiver.slots.run(() => this.#slots.run(task));
    } finally {
      if (--receiver.users === 0) this.#receivers.delete(host);
    }
  }

  async #tryOnce({ url, id, body }: Callback): Promise<PolarError | undefined> {
    const { signal: stop, hosts } = this.#options;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(CALLBACK_TIMEOUT_MS)]);
    try {
      const status = await postCallback({ url, body, headers: this.#headers(id, body), hosts, signal });
      if (status >= 200 && status <= 299) return undefined;
      return new PolarError('CALLBACK_FAILED', `the receiver answered ${status}`);
    } catch (error) {
      const { reason, message } = asPolarError(error);
      if (reason === 'CALLBACK_REFUSED') return asPolarError(error);
      return new PolarError('CALLBACK_FAILED', `the receiver was not reached: ${message}`, { cause: error });
    }
  }

  /** The signature is over the time and the body, so that an old callback cannot be sent again by others. */
  #headers(id: string, body: string): Record<string, string> {
    const { secret } = this.#options;
    const headers = { 'content-type': 'application/json', 'polar-event-id': id };
    if (secret === undefined) return headers;
    const seconds = Math.floor(Date.now() / 1000);
    const digest = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
    return { ...headers, 'polar-signature': `t=${seconds},v1=${digest}` };
  }
}
