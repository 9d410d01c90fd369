// Waiting in a test for what comes in its own time.
import { sleep } from '../../services/common/clock.ts';

/** Ten times what a loaded machine was seen to need. */
const EVENTUALLY_MS = 40_000;
/** Between two looks, at first and later: a look may cost as much as what it waits for. */
const LOOK_MS = { min: 10, max: 50 };
/** Of the time that has passed. */
const LOOK_SHARE = 0.05;

/** Looks again and again until it holds; throws after the limit. */
export async function eventually(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  ms = EVENTUALLY_MS,
): Promise<void> {
  const begun = performance.now();
  while (!(await holds())) {
    const passedMs = performance.now() - begun;
    if (passedMs > ms) {
      throw new Error(`not within ${ms} ms: ${typeof what === 'string' ? what : what()}`);
    }
    await sleep(Math.min(Math.max(LOOK_MS.min, passedMs * LOOK_SHARE), LOOK_MS.max));
  }
}
