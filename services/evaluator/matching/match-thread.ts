// Tries patterns on texts, in a thread of its own: where one does not end, the thread is ended.
import { parentPort, workerData } from 'node:worker_threads';

export interface MatchWork {
  readonly patterns: readonly string[];
  readonly flags: string;
  readonly texts: readonly string[];
}

/** What the thread is given. */
export interface MatchThreadData {
  readonly work: MatchWork;
  /** Patterns that it has begun with: shared, as what it says may come behind its end. */
  readonly begun: Int32Array;
}

/** Which patterns are in each text: all that it says. */
export type Matches = readonly (readonly boolean[])[];

const { work, begun } = workerData as MatchThreadData;
const { patterns, flags, texts } = work;
const matches: boolean[][] = texts.map(() => []);
for (const source of patterns) {
  Atomics.add(begun, 0, 1);
  const pattern = new RegExp(source, flags);
  for (const [at, text] of texts.entries()) matches[at]?.push(pattern.test(text));
}
parentPort?.postMessage(matches satisfies Matches);
