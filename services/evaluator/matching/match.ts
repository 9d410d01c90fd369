// Patterns of a task, tried on what an agent has written. Who backtracks without end takes a thread, and not the evaluator.
import { Worker } from 'node:worker_threads';
import { PolarError } from '../../common/errors.ts';
import type { Matches, MatchThreadData, MatchWork } from './match-thread.ts';

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
): Promise<Matches> {
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
  | { readonly matches: Matches }
  | { readonly begun: number | undefined; readonly error: string }
  | { readonly begun: number | undefined };

async function inThread(work: MatchWork, timeoutMs: number, signal: AbortSignal): Promise<Found> {
  signal.throwIfAborted();
  const counted = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const begun = (): number | undefined => (counted[0] ? counted[0] - 1 : undefined);
  const worker = new Worker(THREAD, {
    workerData: { work, begun: counted } satisfies MatchThreadData,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  });
  const ended = new AbortController();
  try {
    return await new Promise<Found>((resolve, reject) => {
      const timer = setTimeout(() => resolve({ begun: begun() }), timeoutMs);
      ended.signal.addEventListener('abort', () => clearTimeout(timer));
      signal.addEventListener('abort', () => reject(signal.reason as Error), { signal: ended.signal });
      worker.on('message', (matches: Matches) => resolve({ matches }));
      worker.on('error', ({ message }) => resolve({ begun: begun(), error: message }));
    });
  } finally {
    ended.abort();
    await worker.terminate();
  }
}
