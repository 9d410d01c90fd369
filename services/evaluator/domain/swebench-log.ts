// The log of an evaluation as SWE-bench grades it: which part of it tells results, and whether it is to be believed.
import { END_MARKER, START_MARKER } from '../../common/specs/swebench-harness.ts';
import { UnreadableLog } from './swebench-scan.ts';
import type { Statuses } from './swebench-words.ts';

const EXIT_CODE = '>>>>> Test Exit Code';
/** Any of them, wherever it stands: there are no results. */
const FAILURES = [
  '>>>>> Patch Apply Failed',
  '>>>>> Reset Failed',
  '>>>>> Tests Errored',
  '>>>>> Tests Timed Out',
];

/** Signs that tests ran of which nothing is told: a count above 0. Each begins once in a run of digits. */
const SUITE_RAN = new RegExp(
  [
    String.raw`Executed [1-9]\d* of \d`,
    'TOTAL: [1-9]\\d* (?:SUCCESS|FAILED)',
    String.raw`(?<!\d)0*[1-9]\d* passing`,
    String.raw`Tests:\s+[1-9]`,
    String.raw`Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total`,
    '^# tests [1-9]',
    String.raw`(?<!\d)0*[1-9]\d* specs?, \d+ failure`,
    "': ok$",
  ].join('|'),
  'm',
);

export type Told = { readonly statuses: Statuses } | { readonly invalid: string };

/** Results, or why the log tells none that count. */
export function statusesIn(output: string, read: (log: string) => Statuses): Told {
  try {
    return believedIn(output, read);
  } catch (error) {
    if (error instanceof UnreadableLog) return { invalid: error.message };
    throw error;
  }
}

function believedIn(output: string, read: (log: string) => Statuses): Told {
  const log = output.replaceAll(/\r\n?/g, '\n');
  const failure = FAILURES.find((mark) => log.includes(mark));
  if (failure !== undefined) return { invalid: failure };
  const told = betweenMarkers(log);
  if (told === undefined) return { invalid: 'its tests did not begin, or not end' };
  const inside = read(told);
  // Some programs write their results past the markers.
  const statuses = inside.size > 0 ? inside : read(log);
  if (statuses.size === 0 && !SUITE_RAN.test(log)) return { invalid: 'it tells no result' };
  const exitCode = exitCodeIn(log) ?? 0;
  const hasFailure = [...statuses.values()].some((status) => status === 'FAILED' || status === 'ERROR');
  if (exitCode !== 0 && statuses.size > 0 && !hasFailure) {
    return { invalid: `its tests ended with exit code ${exitCode}, and it tells no failure` };
  }
  return { statuses };
}

/** From the first start to the last end: markers in between are printed by the tests, to hide results that follow. */
function betweenMarkers(log: string): string | undefined {
  const [start, end] = [log.indexOf(START_MARKER), log.lastIndexOf(END_MARKER)];
  return start < 0 || end < start ? undefined : log.slice(start + START_MARKER.length, end);
}

/** Of the test command; undefined where the log does not say. The last one counts: tests may print one before it. */
export function exitCodeIn(log: string): number | undefined {
  const at = log.lastIndexOf(`${EXIT_CODE}:`);
  const [, code] = at < 0 ? [] : (/^:\s*(-?\d+)/.exec(log.slice(at + EXIT_CODE.length)) ?? []);
  return code === undefined ? undefined : Number(code);
}

/** The log of a test command without a script: what it printed, between the markers. */
export const logOf = (printed: string, exitCode: number): string =>
  [START_MARKER, printed, END_MARKER, `${EXIT_CODE}: ${exitCode}`].join('\n');

const SET_FLAGS = 'set -uxo pipefail';

/**
 * A row's script, so that it tells how its tests ended: it goes on with others, and ends as the last of them does. Flags are set
 * whatever it sets, as SWE-bench does.
 */
export function scriptOf(evalScript: string): string {
  const lines = evalScript
    .trim()
    .split('\n')
    .filter((line) => line !== '#!/bin/bash' && line !== SET_FLAGS);
  const end = lines.findIndex((line) => line.includes(END_MARKER));
  if (end >= 0 && !evalScript.includes(EXIT_CODE)) {
    lines.splice(end, 1, 'TESTS_EXIT_CODE=$?', lines[end] ?? '', `echo "${EXIT_CODE}: $TESTS_EXIT_CODE"`);
  }
  return `${['#!/bin/bash', SET_FLAGS, ...lines].join('\n')}\n`;
}
