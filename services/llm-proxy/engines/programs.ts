// ThunderAgent's program protocol: it schedules by program, which is an attempt at a session, and is told when one ends.
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { RPC_TIMEOUT_MS, SESSION_END_PAUSE_MS, SESSION_END_TRIES_MAX } from '../../common/limits.ts';
import type { Engine } from './engine.ts';

export class Programs {
  readonly #nodeId: string;
  /** Attempts that it knows of, or may. */
  readonly #begun = new Set<string>();

  constructor(nodeId: string) {
    this.#nodeId = nodeId;
  }

  /** It may know of the attempt by an earlier process of this proxy. */
  mayKnow(session: string): void {
    this.#begun.add(session);
  }

  /** The name of the program that calls of the attempt belong to. */
  begin(session: string): string {
    this.#begun.add(session);
    return this.#nameOf(session);
  }

  /** Tell the scheduler once that no call will follow. Throws ENGINE_UNAVAILABLE after SESSION_END_TRIES_MAX tries. */
  async end(session: string, scheduler: Engine, signal: AbortSignal): Promise<void> {
    if (!this.#begun.delete(session)) return;
    for (let tries = 1; ; tries++) {
      try {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(RPC_TIMEOUT_MS)]);
        await scheduler.ask('/programs/release', { program_id: this.#nameOf(session) }, limit);
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (tries === SESSION_END_TRIES_MAX) throw notTold(error);
      }
      await sleep(SESSION_END_PAUSE_MS, signal);
    }
  }

  #nameOf(session: string): string {
    return `${this.#nodeId}:${session}`;
  }
}

const notTold = (error: unknown): PolarError =>
  new PolarError('ENGINE_UNAVAILABLE', 'the scheduler could not be told that a session has ended', {
    cause: error,
  });
