// Whether results resolve a row of SWE-bench: by its rules for tests that have to pass now, and for those that still have to.
import type { Statuses } from './swebench-words.ts';

export interface Row {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** A test that is not told to have failed has passed. */
  readonly failOnly: boolean;
}

export interface Split {
  readonly failure: string[];
  readonly success: string[];
}

export interface Report {
  readonly resolution: 'FULL' | 'PARTIAL' | 'NO';
  readonly failToPass: Split;
  readonly passToPass: Split;
}

const PASSED = ['PASSED', 'XFAIL'];
/** Of a test that passed before, it is none that was broken. */
const MAINTAINED = [...PASSED, 'SKIPPED'];

export function reportOf(row: Row, statuses: Statuses): Report {
  const find = statusFinder(statuses);
  const split = (names: readonly string[], accepted: readonly string[]): Split => {
    const isGood = (name: string): boolean =>
      row.failOnly ? statuses.get(name) !== 'FAILED' : accepted.includes(find(name) ?? '');
    return {
      failure: names.filter((name) => !isGood(name)),
      success: names.filter(isGood),
    };
  };
  const failToPass = split(row.failToPass, PASSED);
  const passToPass = split(row.passToPass, MAINTAINED);
  return { resolution: resolutionOf(failToPass, passToPass), failToPass, passToPass };
}

function resolutionOf(failToPass: Split, passToPass: Split): Report['resolution'] {
  if (passToPass.failure.length > 0) return 'NO';
  if (failToPass.failure.length === 0) return 'FULL';
  return failToPass.success.length > 0 ? 'PARTIAL' : 'NO';
}

/** No test passes. */
export const unresolved = (row: Row): Report => ({
  resolution: 'NO',
  failToPass: { failure: [...row.failToPass], success: [] },
  passToPass: { failure: [...row.passToPass], success: [] },
});

/** Names of rows may be cut within their parameters: such a one stands for all that begin with it, where these agree. */
function statusFinder(statuses: Statuses): (name: string) => string | undefined {
  const order = new Map([...statuses.keys()].map((name, index) => [name, index]));
  // So that those that begin alike stand together.
  const sorted = [...statuses.keys()].filter((name) => name.includes('[')).sort();
  return (name) => {
    const exact = statuses.get(name);
    if (exact !== undefined || !isCut(name)) return exact;
    const found: string[] = [];
    for (let at = placeOf(name, sorted); sorted[at]?.startsWith(name); at++) found.push(sorted[at] ?? '');
    const passes = new Set(found.map((one) => PASSED.includes(statuses.get(one) ?? '')));
    if (passes.size !== 1) return undefined;
    const first = found.reduce((a, b) => ((order.get(b) ?? 0) < (order.get(a) ?? 0) ? b : a));
    return statuses.get(first);
  };
}

const isCut = (name: string): boolean => count(name, '[') > count(name, ']');
const count = (text: string, character: string): number => text.split(character).length - 1;

/** Of the first one that is not before `name`. */
function placeOf(name: string, sorted: readonly string[]): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? '') < name) low = middle + 1;
    else high = middle;
  }
  return low;
}
