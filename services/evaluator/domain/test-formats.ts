// What test commands print, by the format that a task names.
import type { TestFormat } from '../../common/specs/catalogue.ts';
import { normaliseName } from '../../common/specs/test-names.ts';
import { readCargo } from './cargo-results.ts';
import { readGo } from './go-results.ts';
import { readJest } from './jest-results.ts';
import { readJunit } from './junit-results.ts';
import { readPytest } from './pytest-results.ts';
import { readTap } from './tap-results.ts';
import { type Expected, type TestResults, type TestRun, worstByName } from './test-results.ts';
import { readUnittest } from './unittest-results.ts';

export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** Each reads where its program writes results: what tests print elsewhere is none. */
const READERS: Readonly<Record<TestFormat, (printed: Printed, expected: Expected) => Iterable<TestRun>>> = {
  // Standard error first: what a summary on standard output says counts last.
  pytest: ({ stdout, stderr }, expected) =>
    readPytest(stderr === '' ? stdout : `${stderr}\n${stdout}`, expected),
  go: ({ stdout }) => readGo(stdout),
  cargo: ({ stdout }) => readCargo(stdout),
  jest: ({ stdout }) => readJest(stdout),
  tap: ({ stdout }) => readTap(stdout),
  junit: ({ stdout }) => readJunit(stdout),
  unittest: ({ stdout, stderr }) => {
    const told = readUnittest(stderr);
    return told.length > 0 ? told : readUnittest(stdout);
  },
};

/** Names are compared as they are printed; those of pytest without their file. */
const nameOf = (format: TestFormat) => (format === 'pytest' ? normaliseName : (name: string) => name);

/** What was printed, by name: of tests that have one name, the worst result. */
export const readResults = (format: TestFormat, printed: Printed, expected: Expected): TestResults =>
  worstByName(READERS[format](printed, expected), nameOf(format));

/** What was expected, by the names that results have. */
export const wantedResults = (format: TestFormat, expected: Expected): TestResults =>
  worstByName(Object.entries(expected), nameOf(format));
