// Refusals: a request that an engine would refuse, and the scripted ones.
import { createHash } from 'node:crypto';
import type { Switches } from './switches.ts';

const REMEMBERED_REQUESTS_MAX = 4_096;

const TYPES: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  404: 'NotFoundError',
  413: 'RequestEntityTooLargeError',
  429: 'RateLimitError',
  503: 'ServiceUnavailableError',
};

/** Answered with `status` in the dialect's form. */
export class RequestFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  get type(): string {
    return TYPES[this.status] ?? 'InternalServerError';
  }
}

export interface Fate {
  readonly fails: boolean;
  readonly cut: boolean;
  readonly stalls: boolean;
}

/** Decides which calls fail; counts calls, so it is one for a server. */
export class FaultPlan {
  readonly #tries = new Map<string, number>();
  #calls = 0;
  #cuttable = 0;

  decide(switches: Switches, body: string): Fate {
    this.#calls++;
    const spared = switches.fault_tries > 0 && this.#tryOf(body) > switches.fault_tries;
    const fails = !spared && switches.error_every > 0 && this.#calls % switches.error_every === 0;
    const cuttable = !spared && !fails && (switches.cut_after_tokens > 0 || switches.cut_before_head);
    const cut = cuttable && ++this.#cuttable % switches.cut_every === 0;
    return { fails, cut, stalls: !spared && switches.stall_ms > 0 };
  }

  #tryOf(body: string): number {
    const digest = createHash('sha256').update(body).digest('base64');
    const tries = (this.#tries.get(digest) ?? 0) + 1;
    this.#tries.delete(digest);
    this.#tries.set(digest, tries);
    for (const oldest of this.#tries.keys()) {
      if (this.#tries.size <= REMEMBERED_REQUESTS_MAX) break;
      this.#tries.delete(oldest);
    }
    return tries;
  }
}
