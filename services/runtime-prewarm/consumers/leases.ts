// The end of leases.
import { sleep } from '../../common/clock.ts';
import { LEASE_CHECK_MS } from '../../common/limits.ts';
import type { RuntimePrewarmContext } from '../context.ts';

/** Runs until the signal aborts. */
export async function watchLeases({ runtimes }: RuntimePrewarmContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    runtimes.removeExpired();
    await sleep(LEASE_CHECK_MS, signal);
  }
}
