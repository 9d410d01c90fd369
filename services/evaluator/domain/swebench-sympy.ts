// Logs of sympy's own test program as SWE-bench reads them: `test_a ok`, and a heading for each failure.
import { type Statuses, stripped, wordsOf } from './swebench-words.ts';

const ENDS = [
  [' E', 'ERROR'],
  [' F', 'FAILED'],
  [' ok', 'PASSED'],
] as const;

export function readSympyLog(log: string): Statuses {
  const lines = log.split('\n');
  const statuses = new Map<string, string>();
  for (const name of lines.flatMap(failedIn)) statuses.set(name, 'FAILED');
  for (const line of lines.map(stripped).filter((one) => one.startsWith('test_'))) {
    const [name = ''] = wordsOf(line);
    for (const [end, status] of ENDS) if (line.endsWith(end)) statuses.set(name, status);
  }
  return statuses;
}

const FILE_END = '.py:';

/** `____ sympy/core/tests/test_a.py:test_b ____`: what stands between the first space and the last one, where it names a file. */
function failedIn(line: string): string[] {
  const [first, last] = [line.indexOf(' '), line.lastIndexOf(' ')];
  const file = last < FILE_END.length ? -1 : line.lastIndexOf(FILE_END, last - FILE_END.length);
  return first >= 0 && file > first ? [line.slice(first + 1, last)] : [];
}
