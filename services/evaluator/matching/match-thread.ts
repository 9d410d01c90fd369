// Tries patterns on texts, in a thread of its own: where one does not end, the thread is ended.
import { parentPort, workerData } from 'node:worker_threads';

export interface MatchWork {
  readonly patterns: readonly string[];
  readonly flags: string;
  readonly texts: readonly string[];
}

/** A pattern that is begun with; last of all, which patterns are in each text. */
export type MatchMessage =
  | { readonly begins: number }
  | { readonly matches: readonly (readonly boolean[])[] };

const say = (message: MatchMessage): void => parentPort?.postMessage(message);

const { patterns, flags, texts } = workerData as MatchWork;
const matches: boolean[][] = texts.map(() => []);
for (const [index, source] of patterns.entries()) {
  say({ begins: index });
  const pattern = new RegExp(source, flags);
  for (const [at, text] of texts.entries()) matches[at]?.push(pattern.test(text));
}
say({ matches });
