// Whether the connection to NATS is there. The client comes back by itself and says nothing of why it cannot: a certificate
// that has expired meanwhile, or a login that was changed, would be a silence.
import type { NatsConnection } from 'nats';
import { sleep } from '../clock.ts';
import type { Logger } from '../logger.ts';

/** From the loss to the first look why, and between two. */
const LOOK_MS = 2_000;

export class Connection {
  readonly #log: Logger | undefined;
  readonly #why: () => Promise<string | undefined>;
  /** Aborts when the connection is there again. */
  #away: AbortController | undefined;
  #problem: string | undefined;

  /** `why` no connection comes about now; undefined: it does. */
  constructor(nc: NatsConnection, log: Logger | undefined, why: () => Promise<string | undefined>) {
    this.#log = log;
    this.#why = why;
    void this.#watch(nc);
    // Closed while it is away, it says nothing more.
    void nc.closed().then(() => this.#end());
  }

  /** Why it does not come back, as far as is known; undefined: it is there. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async #watch(nc: NatsConnection): Promise<void> {
    for await (const { type } of nc.status()) {
      // It is said of each try, too.
      if (type === 'disconnect' && this.#away === undefined && !nc.isClosed()) {
        this.#away = new AbortController();
        this.#log?.warn('connection to NATS lost');
        void this.#look(this.#away.signal);
      } else if (type === 'reconnect' && this.#away !== undefined) {
        this.#end();
        this.#log?.info('connection to NATS is there again');
      }
    }
  }

  #end(): void {
    this.#away?.abort();
    this.#away = undefined;
    this.#problem = undefined;
  }

  async #look(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(LOOK_MS, signal);
      const problem = signal.aborted ? undefined : await this.#why();
      if (signal.aborted) return;
      if (problem !== undefined && problem !== this.#problem) {
        this.#log?.error({ problem }, 'NATS cannot be reached');
      }
      this.#problem = problem;
    }
  }
}
