// Results in JUnit's XML: one document or several, suites inside of suites.
import { stripAnsi, type TestRun } from './test-results.ts';
import { xmlEvents } from './xml.ts';

/** What a test holds that did not pass; `status` of the others, as googletest and CTest have it. */
const INSIDE = new Map([
  ['error', 'ERROR'],
  ['failure', 'FAILED'],
  ['skipped', 'SKIPPED'],
]);
const NOT_RUN = new Set(['notrun', 'disabled', 'skipped']);

interface Test {
  readonly name: string;
  /** Where nothing inside of it says another. */
  readonly status: string;
}

/** A test is `classname.name`; its suites do not count. A document that is broken is an ERROR by the name of its root. */
export function* readJunit(output: string): Generator<TestRun> {
  let test: Test | undefined;
  for (const event of xmlEvents(stripAnsi(output), ['testsuites', 'testsuite'])) {
    if (event.kind === 'broken') yield [event.name, 'ERROR'];
    else if (event.kind === 'close') {
      if (event.name !== 'testcase') continue;
      // Worse that stands inside of it counts more.
      if (test !== undefined) yield [test.name, test.status];
      test = undefined;
    } else if (event.name === 'testcase') test = testOf(event.attributes);
    else {
      const status = INSIDE.get(event.name);
      if (status !== undefined && test !== undefined) yield [test.name, status];
    }
  }
}

const testOf = (attributes: ReadonlyMap<string, string>): Test => ({
  name: ['classname', 'name'].flatMap((key) => attributes.get(key) || []).join('.'),
  status: NOT_RUN.has(attributes.get('status') ?? '') ? 'SKIPPED' : 'PASSED',
});
