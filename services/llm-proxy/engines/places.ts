// Places for calls at the engines of a pool: the best one at once, else the first that becomes free, in order.
import { PolarError } from '../../common/errors.ts';
import { ENGINE_BUSY_RETRY_MS, ENGINE_QUEUE_MAX } from '../../common/limits.ts';
import { route } from '../domain/routing.ts';
import { Homes } from './homes.ts';
import type { Member } from './member.ts';

/** A call that wants a place. */
export interface Applicant {
  /** Session and attempt. */
  readonly session: string;
  /** Engines that have failed this call. */
  readonly failed: ReadonlySet<Member>;
}

interface Waiting {
  readonly applicant: Applicant;
  readonly resolve: (member: Member) => void;
  readonly reject: (error: unknown) => void;
}

export class Places {
  readonly #members: () => readonly Member[];
  readonly #name: string;
  readonly #queueMs: number;
  readonly #homes = new Homes();
  readonly #waiting = new Set<Waiting>();

  /** `name` is that of the pool in messages. */
  constructor(name: string, queueMs: number, members: () => readonly Member[]) {
    this.#name = name;
    this.#queueMs = queueMs;
    this.#members = members;
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** A place; to be given back with `leave`. Throws ENGINE_BUSY, ENGINE_UNAVAILABLE, the signal's reason. */
  async take(applicant: Applicant, signal: AbortSignal): Promise<Member> {
    signal.throwIfAborted();
    // Nobody overtakes those that wait for the same.
    this.pump();
    return this.#place(applicant) ?? (await this.#wait(applicant, signal));
  }

  leave(member: Member): void {
    member.load--;
    this.pump();
  }

  /** Place those that wait, as far as there is room now; what is free may have failed those in front. */
  pump(): void {
    let full = false;
    for (const waiting of this.#waiting) {
      const isChoosy = waiting.applicant.failed.size > 0;
      if (full && !isChoosy) continue;
      try {
        const member = this.#place(waiting.applicant);
        if (member === undefined) {
          full ||= !isChoosy;
          continue;
        }
        waiting.resolve(member);
      } catch (error) {
        waiting.reject(error);
      }
      this.#waiting.delete(waiting);
    }
  }

  forget(session: string): void {
    this.#homes.forget(session);
  }

  /** Unset: all are full. */
  #place({ session, failed }: Applicant): Member | undefined {
    const found = route(this.#members(), this.#homes.of(session), failed);
    if (found.kind === 'full') return undefined;
    if (found.kind === 'none') throw this.#none();
    found.engine.load++;
    this.#homes.set(session, found.engine);
    return found.engine;
  }

  async #wait(applicant: Applicant, signal: AbortSignal): Promise<Member> {
    if (this.#waiting.size >= ENGINE_QUEUE_MAX) throw this.#busy(`${ENGINE_QUEUE_MAX} calls wait`);
    const { promise, resolve, reject } = Promise.withResolvers<Member>();
    const waiting = { applicant, resolve, reject };
    this.#waiting.add(waiting);
    // Out of the line at once, so that no place is given to a call that is gone.
    const giveUp = (error: unknown): void => {
      this.#waiting.delete(waiting);
      reject(error);
    };
    const timer = setTimeout(() => giveUp(this.#busy(`no place within ${this.#queueMs} ms`)), this.#queueMs);
    const abort = (): void => giveUp(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  #busy(why: string): PolarError {
    const message = `the engines of ${this.#name} have as many calls as they may (${why}); come again`;
    return new PolarError('ENGINE_BUSY', message, { retryAfterMs: ENGINE_BUSY_RETRY_MS });
  }

  #none(): PolarError {
    const message = `no engine of ${this.#name} is in use; ListEngines tells those there are`;
    return new PolarError('ENGINE_UNAVAILABLE', message, { retryAfterMs: ENGINE_BUSY_RETRY_MS });
  }
}
