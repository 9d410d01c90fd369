// What must be stored in the mesh before a run is done with.
import { sleep } from '../../common/clock.ts';
import { asPolarError } from '../../common/errors.ts';

/** All tries; the run's slot is not free meanwhile. */
const STORE_TOTAL_MS = 600_000;
/** Pause behind the first try; doubles up to the other. */
const STORE_PAUSE_MS = 500;
const STORE_PAUSE_MAX_MS = 10_000;

/** Tried until it is stored; `onRetry` hears of the first try that failed. Throws what cannot become better, or has not. */
export async function untilStored(
  store: () => Promise<void>,
  onRetry: (error: unknown) => void,
  signal: AbortSignal,
  firstPauseMs = STORE_PAUSE_MS,
): Promise<void> {
  const until = performance.now() + STORE_TOTAL_MS;
  let isTold = false;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, STORE_PAUSE_MAX_MS)) {
    try {
      return await store();
    } catch (error) {
      if (!asPolarError(error).retryable || signal.aborted || performance.now() > until) throw error;
      if (!isTold) onRetry(error);
      isTold = true;
    }
    await sleep(pauseMs, signal);
  }
}
