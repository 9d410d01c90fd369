// Work of a trainer's stream, which outlives an absence of NATS of any length.
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { STREAM_POLL_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import { streamInterrupted } from '../events.ts';

export type Persist = <T>(attempt: () => Promise<T>) => Promise<T>;

/** Tries until it works, or fails for another reason, or the signal aborts. */
export function persistently(log: Logger, signal: AbortSignal): Persist {
  return async (attempt) => {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof PolarError && error.retryable && error.reason !== 'STREAM_LAPSED'))
          throw error;
        streamInterrupted(log, error);
      }
      await sleep(STREAM_POLL_MS, signal);
    }
  };
}
