// Patterns of a task, tried on what an agent has written. Who backtracks without end takes a thread, and not the evaluator.
import { Worker } from 'node:worker_threads';
import { PolarError } from '../../common/errors.ts';
import type { MatchMessage, MatchWork } from './match-thread.ts';

const THREAD = new URL('./match-thread.ts', import.meta.url);
/** For all patterns of a session. */
const MATCH_MS_MAX = 10_000;
/** Of that: where a thread without patterns takes longer, it is the machine that is slow. */
const QUICK_SHARE = 0.25;
/** Heap of the thread; above: INVALID_TASK. */
const HEAP_MIB_MAX = 256;

export interface Limits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Which patterns are in each text. Throws INVALID_TASK for patterns that take longer than MATCH_MS_MAX, or more memory than there
 * is; EVALUATION_TIMEOUT where it may be the machine; SANDBOX_FAILED where that has no room for a thread.
 */
export async function matchesOf(
  work: MatchWork,
  limits: Limits,
  matchMsMax = MATCH_MS_MAX,
): Promise<readonly (readonly boolean[])[]> {
  const timeoutMs = Math.min(matchMsMax, limits.timeoutMs);
  const found = await inThread(work, timeoutMs, limits.signal);
  if ('matches' in found) return found.matches;
  if ('error' in found && found.begun === undefined)
    throw new PolarError('SANDBOX_FAILED', `the patterns could not be tried: ${found.error}`);
  const which = `evaluator.config.patterns[${found.begun ?? 0}]`;
  if ('error' in found) throw new PolarError('INVALID_TASK', `${which}: ${found.error}`);
  const control = { ...work, patterns: [] };
  const isWhole = timeoutMs === matchMsMax;
  const quick = isWhole ? await inThread(control, matchMsMax * QUICK_SHARE, limits.signal) : found;
  if (!('matches' in quick))
    throw new PolarError('EVALUATION_TIMEOUT', 'the patterns were not tried in time');
  const why = `takes longer than ${matchMsMax} ms: it tries too many ways to match`;
  throw new PolarError('INVALID_TASK', `${which}: ${why}`);
}

/** `begun`: undefined where the thread has not come to the first pattern. */
type Found =
  | { readonly matches: readonly (readonly boolean[])[] }
  | { readonly begun: number | undefined; readonly error: string }
  | { readonly begun: number | undefined };

async function inThread(workerData: MatchWork, timeoutMs: number, signal: AbortSignal): Promise<Found> {
  signal.throwIfAborted();
  const worker = new Worker(THREAD, {
    workerData,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  });
  const ended = new AbortController();
  let begun: number | undefined;
  try {
    return await new Promise<Found>((resolve, reject) => {
      const timer = setTimeout(() => resolve({ begun }), timeoutMs);
      ended.signal.addEventListener('abort', () => clearTimeout(timer));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { signal: ended.signal });
      worker.on('message', (message: MatchMessage) => {
        if ('matches' in message) resolve(message);
        else begun = message.begins;
      });
      worker.on('error', ({ message }) => resolve({ begun, error: message }));
    });
  } finally {
    ended.abort();
    await worker.terminate();
  }
}
