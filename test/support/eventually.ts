// Waiting in a test for what comes in its own time.
import { sleep } from '../../services/common/clock.ts';

/** Ten times what a loaded machine was seen to need. */
const EVENTUALLY_MS = 40_000;
const LOOK_MS = 10;

/** Looks again and again until it holds; throws after the limit. */
export async function eventually(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  ms = EVENTUALLY_MS,
): Promise<void> {
  const until = performance.now() + ms;
  while (!(await holds())) {
    if (performance.now() > until) {
      throw new Error(`not within ${ms} ms: ${typeof what === 'string' ? what : what()}`);
    }
    await sleep(LOOK_MS);
  }
}
