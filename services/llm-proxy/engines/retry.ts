// Trying again while an engine is not there.
import { sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import {
  ENGINE_RETRY_PAUSE_MAX_MS,
  ENGINE_RETRY_PAUSE_MS,
  ENGINE_RETRY_TOTAL_MS,
} from '../../common/limits.ts';

/**
 * Repeat on ENGINE_UNAVAILABLE for ENGINE_RETRY_TOTAL_MS from the first one on, unless the engine wants to be left alone
 * for longer; at once where the error's `retryAfterMs` is 0, as another engine is there. Throws the last error, or the
 * signal's reason.
 */
export async function retried<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  let until: number | undefined;
  let pauseMs = ENGINE_RETRY_PAUSE_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const absent = error instanceof PolarError && error.reason === 'ENGINE_UNAVAILABLE';
      until ??= performance.now() + ENGINE_RETRY_TOTAL_MS;
      if (!absent || performance.now() + Math.max(pauseMs, error.retryAfterMs ?? 0) > until) throw error;
      if (error.retryAfterMs === 0) continue;
    }
    await sleep(pauseMs, signal);
    signal.throwIfAborted();
    pauseMs = Math.min(pauseMs * 2, ENGINE_RETRY_PAUSE_MAX_MS);
  }
}

/**
 * As `retried`, for what a reply that was sampled needs yet. It throws ENGINE_ERROR, upon which nothing is sampled again, or the
 * signal's reason.
 */
export async function retriedBehind<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  try {
    return await retried(signal, attempt);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const message = `a reply was sampled, and not made a message: ${asPolarError(error).message}`;
    throw new PolarError('ENGINE_ERROR', message, { cause: error });
  }
}
