// Results of `go test -json`, and of `go test -v`, whose lines are taken for the events that -json tells.
import { linesOf, type TestRun } from './test-results.ts';

interface Event {
  readonly action: string;
  /** Of events that belong together: a package, or what stands before its last line. */
  readonly scope: string;
  readonly packageName: string;
  /** None: the package as a whole. */
  readonly test?: string;
}

interface Package {
  /** Tests that have begun, and not ended. */
  readonly open: Set<string>;
  hasFailed: boolean;
}

const STATUS = new Map([
  ['pass', 'PASSED'],
  ['fail', 'FAILED'],
  ['skip', 'SKIPPED'],
]);
/** Benchmarks begin as tests do, and have no result. */
const BENCHMARK = /^Benchmark/;

/**
 * A test that has begun and not ended is an ERROR, and so is, under its own name, a package that failed without a test of
 * it: it was not built, or its program failed itself.
 */
export function* readGo(output: string): Generator<TestRun> {
  const packages = new Map<string, Package>();
  for (const line of linesOf(output)) {
    const event = eventOf(line);
    if (event === undefined) continue;
    const { action, scope, packageName, test } = event;
    const state = packages.get(scope) ?? { open: new Set(), hasFailed: false };
    packages.set(scope, state);
    const status = STATUS.get(action);
    if (test !== undefined) {
      if (action === 'run' && !BENCHMARK.test(test)) state.open.add(test);
      if (status === undefined) continue;
      state.open.delete(test);
      state.hasFailed ||= status === 'FAILED';
      yield [test, status];
    } else if (status !== undefined) {
      if (status === 'FAILED' && !state.hasFailed && state.open.size === 0) yield [packageName, 'ERROR'];
      yield* unended(state);
      packages.delete(scope);
    }
  }
  for (const state of packages.values()) yield* unended(state);
}

const unended = ({ open }: Package): TestRun[] => [...open].map((test) => [test, 'ERROR']);

const JSON_EVENT = /^\{"(?:Time|Action|ImportPath)":.*\}$/s;

const eventOf = (line: string): Event | undefined =>
  JSON_EVENT.test(line) ? jsonEvent(line) : textEvent(line);

function jsonEvent(line: string): Event | undefined {
  try {
    const { Action: action, Package: scope, Test: test } = JSON.parse(line);
    if (typeof action !== 'string' || typeof scope !== 'string') return undefined;
    return { action, scope, packageName: scope, ...(typeof test === 'string' && { test }) };
  } catch {
    return undefined;
  }
}

const RUN = /^=== RUN {3}(\S+)$/;
const END = /^ *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$/;
const PACKAGE = /^(ok {2}|FAIL|\? {3})\t(\S+)(?:[\t ].*)?$/;

function textEvent(line: string): Event | undefined {
  const text = { scope: '', packageName: '' };
  const [, begun] = RUN.exec(line) ?? [];
  if (begun !== undefined) return { ...text, action: 'run', test: begun };
  const [, result, test] = END.exec(line) ?? [];
  if (result !== undefined && test !== undefined) return { ...text, action: result.toLowerCase(), test };
  const [, ended, packageName] = PACKAGE.exec(line) ?? [];
  if (packageName === undefined) return undefined;
  return { ...text, packageName, action: ended === 'FAIL' ? 'fail' : 'pass' };
}
