// Trying again while an engine is not there.
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import {
  ENGINE_RETRY_PAUSE_MAX_MS,
  ENGINE_RETRY_PAUSE_MS,
  ENGINE_RETRY_TOTAL_MS,
} from '../../common/limits.ts';

/** Repeat on ENGINE_UNAVAILABLE up to ENGINE_RETRY_TOTAL_MS. Throws the last error, or the signal's reason. */
export async function retried<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  const until = performance.now() + ENGINE_RETRY_TOTAL_MS;
  for (let pauseMs = ENGINE_RETRY_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, ENGINE_RETRY_PAUSE_MAX_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const absent = error instanceof PolarError && error.reason === 'ENGINE_UNAVAILABLE';
      if (!absent || performance.now() + pauseMs > until) throw error;
    }
    await sleep(pauseMs, signal);
    signal.throwIfAborted();
  }
}
