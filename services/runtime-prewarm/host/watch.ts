// What ends a command before its own end.
import { PolarError } from '../../common/errors.ts';
import { SANDBOX_MEMORY_CHECK_MS, SANDBOX_START_MS } from '../../common/limits.ts';
import type { Cell } from '../containment/containment.ts';
import type { CommandLimit } from '../domain/command.ts';

export type Watched = Pick<Cell, 'kill' | 'oomKills'>;

/** Kills it at its limit, when the caller leaves, and at the memory limit. */
export class Watch {
  timedOut = false;
  readonly #cell: Watched;
  readonly #signal: AbortSignal;
  readonly #limit: CommandLimit;
  readonly #memory: NodeJS.Timeout;
  readonly #kill = (): void => this.#cell.kill();

  constructor(cell: Watched, limit: CommandLimit, signal: AbortSignal) {
    this.#cell = cell;
    this.#signal = signal;
    signal.addEventListener('abort', this.#kill, { once: true });
    if (signal.aborted) this.#kill();
    this.#limit = limit;
    limit.start(() => {
      this.timedOut = true;
      this.#kill();
    });
    // The v1 kernel kills one process only and would leave a crippled harness to run on.
    this.#memory = setInterval(() => cell.oomKills() > 0 && this.#kill(), SANDBOX_MEMORY_CHECK_MS);
  }

  async starting<T>(started: Promise<T>): Promise<T> {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#kill();
    }, SANDBOX_START_MS);
    try {
      const result = await started;
      if (late) throw new PolarError('SANDBOX_FAILED', 'the sandbox did not start within SANDBOX_START_MS');
      return result;
    } finally {
      clearTimeout(timer);
    }
  }

  stop(): void {
    this.#limit.stop();
    clearInterval(this.#memory);
    this.#signal.removeEventListener('abort', this.#kill);
  }
}
