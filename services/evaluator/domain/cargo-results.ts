// Results of `cargo test`: what the test programs of Rust print, one after the other.
import { linesOf, type TestRun } from './test-results.ts';

const RUNNING = /^running (\d+) tests?$/;
const RESULT = /^test (.+?) \.\.\. ?(.*)$/s;
const SUMMARY = /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured;/;
const SHOULD_PANIC = / - should panic$/;

/** From `running N tests` to the summary with the same numbers. */
interface Program {
  readonly title: string;
  readonly tests: number;
  readonly runs: TestRun[];
  /** All have their result; what tests have printed may follow. */
  isTold: boolean;
}

/** A program that does not end as it said, crashed or was written over, is an ERROR by its title. */
export function* readCargo(output: string): Generator<TestRun> {
  let program: Program | undefined;
  for (const line of linesOf(output)) {
    const [title, tests] = RUNNING.exec(line) ?? [];
    if (title !== undefined && program?.isTold !== true) {
      yield* broken(program);
      program = { title, tests: Number(tests), runs: [], isTold: false };
    } else if (program !== undefined) {
      if (!program.isTold) read(program, line);
      if (program.isTold && agrees(program, line)) {
        yield* program.runs;
        program = undefined;
      }
    }
  }
  yield* broken(program);
}

function read(program: Program, line: string): void {
  const [, name, said] = RESULT.exec(line) ?? [];
  if (name !== undefined && said !== undefined) {
    program.runs.push([name.replace(SHOULD_PANIC, ''), statusOf(said)]);
  }
  program.isTold = line === '' && program.runs.length >= program.tests;
}

/** What stands there may be cut off by a crash, or printed by the test. */
function statusOf(said: string): string {
  if (said === 'ok') return 'PASSED';
  if (said === 'FAILED') return 'FAILED';
  return /^ignored(?:,|$)/.test(said) ? 'SKIPPED' : 'ERROR';
}

/** Whether it is the program's own summary: tests may print one. */
function agrees({ tests, runs }: Program, line: string): boolean {
  const summary = SUMMARY.exec(line);
  if (summary === null) return false;
  const [passed, failed, ignored] = summary.slice(1).map(Number);
  const count = (status: string): number => runs.filter(([, one]) => one === status).length;
  return (
    runs.length === tests &&
    count('PASSED') === passed &&
    count('FAILED') === failed &&
    count('SKIPPED') === ignored
  );
}

const broken = (program: Program | undefined): TestRun[] =>
  program === undefined ? [] : [...program.runs, [program.title, 'ERROR']];
