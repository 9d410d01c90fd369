// A client of the scheduler that leads, wherever that is: it is told several addresses, and by one that follows, where.
import type { CallOptions, Client } from '@connectrpc/connect';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { asPolarError, type PolarError } from '../../services/common/errors.ts';
import { LEASE_POLL_MS, RPC_TIMEOUT_MS } from '../../services/common/limits.ts';
import { credentialsFor } from './credentials.ts';
import { isOfMesh } from './origin.ts';

type Rollout = Client<typeof RolloutService>;
type Method = (request: unknown, options?: CallOptions) => unknown;

/** One try, where there are others to ask: a machine that is gone does not even refuse. */
const TRY_MS = RPC_TIMEOUT_MS / 3;

/** `urls` are one or more, comma separated. Calls are safe to repeat, and so they are while a take-over lasts. */
export function leaderClient(urls: string, tryMs = TRY_MS): Rollout {
  const way = new Way(urls.split(',').map((url) => url.trim().replace(/\/+$/, '')));
  const methods = RolloutService.methods.map(({ localName, methodKind }): [string, Method] => {
    const call = (request: unknown, options?: CallOptions): unknown =>
      (way.client as unknown as Record<string, Method>)[localName]?.(request, options);
    if (methodKind !== 'unary') return [localName, streamed(way, call)];
    const limited: Method = (request, options) => call(request, { timeoutMs: tryMs, ...options });
    // What is sent may be large, and is sent again from its beginning.
    const isSent = localName.startsWith('submit');
    return [localName, unary(way, way.hasOthers && !isSent ? limited : call)];
  });
  return Object.fromEntries(methods) as unknown as Rollout;
}

const unary =
  (way: Way, call: Method): Method =>
  async (request, options) => {
    for (const tries = way.begin(); ; ) {
      try {
        return await call(request, options);
      } catch (error) {
        await tries.again(asPolarError(error), options?.signal);
      }
    }
  };

/** Tried again only until its first message. */
const streamed = (way: Way, call: Method): Method =>
  async function* (request, options) {
    for (const tries = way.begin(); ; ) {
      let begun = false;
      try {
        for await (const message of call(request, options) as AsyncIterable<unknown>) {
          begun = true;
          yield message;
        }
        return;
      } catch (error) {
        if (begun) throw error;
        await tries.again(asPolarError(error), options?.signal);
      }
    }
  };

interface Tries {
  /** Turns to another address, after a pause where that is needed. Throws the error where there is no sense in it. */
  again(error: PolarError, signal: AbortSignal | undefined): Promise<void>;
}

/** The addresses, and the one that is called now. */
class Way {
  readonly #urls: readonly string[];
  #at = 0;
  #url: string;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
    this.#url = urls[0] ?? '';
  }

  get hasOthers(): boolean {
    return this.#urls.length > 1;
  }

  get client(): Rollout {
    return createPlainClient(RolloutService, this.#url, credentialsFor(this.#url));
  }

  /** For one call. */
  begin(): Tries {
    const until = performance.now() + RPC_TIMEOUT_MS;
    /** Addresses one after another at which nobody answers. */
    let silent = 0;
    return {
      again: async (error, signal) => {
        const follows = error.reason === 'NOT_LEADER';
        const isSilent =
          error.reason === 'NODE_LOST' || (error.reason === 'STAGE_TIMEOUT' && !isOfMesh(error));
        silent = follows ? 0 : silent + 1;
        const senseless = !follows && (!isSilent || silent >= this.#urls.length + 1);
        const alone = !follows && !this.hasOthers && this.#url === this.#urls[0];
        // Where it ends here, the next call begins elsewhere.
        if (follows || isSilent) this.#turn(error.leaderUrl);
        if (senseless || alone || signal?.aborted || performance.now() > until) throw error;
        await sleep(LEASE_POLL_MS, signal);
      },
    };
  }

  #turn(told: string | undefined): void {
    if (told !== undefined && told !== this.#url) {
      this.#url = told;
      return;
    }
    this.#at = (this.#at + 1) % this.#urls.length;
    this.#url = this.#urls[this.#at] ?? '';
  }
}
