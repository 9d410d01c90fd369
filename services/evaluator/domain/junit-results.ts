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

/** A test is `classname.name`; its suites do not count. A document that is broken is an ERROR by the name of its root. */
export function* readJunit(output: string): Generator<TestRun> {
  let test: string | undefined;
  for (const event of xmlEvents(stripAnsi(output), ['testsuites', 'testsuite'])) {
    if (event.kind === 'broken') yield [event.name, 'ERROR'];
    else if (event.kind === 'close') test = event.name === 'testcase' ? undefined : test;
    else if (event.name === 'testcase') {
      test = nameOf(event.attributes);
      yield [test, NOT_RUN.has(event.attributes.get('status') ?? '') ? 'SKIPPED' : 'PASSED'];
    } else {
      const status = INSIDE.get(event.name);
      if (status !== undefined && test !== undefined) yield [test, status];
    }
  }
}

const nameOf = (attributes: ReadonlyMap<string, string>): string =>
  ['classname', 'name'].flatMap((key) => attributes.get(key) || []).join('.');
