// Logs of SWE-bench's form with what its own package says of them: test/vectors/swebench and swebench-languages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LogParser } from '../../services/common/specs/catalogue.ts';
import { statusesIn } from '../../services/evaluator/domain/swebench-log.ts';
import { LOG_READERS } from '../../services/evaluator/domain/swebench-parsers.ts';
import { reportOf, unresolved } from '../../services/evaluator/domain/swebench-report.ts';

export interface SwebenchCase {
  readonly what: string;
  /** Beside the cases, where it is no `text` of theirs. */
  readonly file?: string;
  readonly text?: string;
  readonly log_parser: LogParser;
  readonly eval_type: string;
  readonly FAIL_TO_PASS: string[];
  readonly PASS_TO_PASS: string[];
  readonly expected: {
    readonly applied: boolean;
    readonly resolution: string;
    readonly statuses?: Record<string, string>;
    readonly tests_status?: Record<string, { success: string[]; failure: string[] }>;
  };
}

export const vectorsIn = (folder: string): string => join(import.meta.dirname, '../vectors', folder);

export const casesIn = (folder: string): readonly SwebenchCase[] =>
  JSON.parse(readFileSync(join(vectorsIn(folder), 'results.json'), 'utf8'));

/** Grades the log of a case as the package does. */
export function expectGraded({ log_parser, eval_type, expected, ...lists }: SwebenchCase, log: string): void {
  const row = {
    failToPass: lists.FAIL_TO_PASS,
    passToPass: lists.PASS_TO_PASS,
    failOnly: eval_type === 'fail_only',
  };
  const told = statusesIn(log, LOG_READERS[log_parser]);
  expect('statuses' in told).to.equal(expected.applied);
  const report = 'statuses' in told ? reportOf(row, told.statuses) : unresolved(row);
  expect(`RESOLVED_${report.resolution}`).to.equal(expected.resolution);
  if (!('statuses' in told)) return;
  expect(Object.fromEntries(told.statuses)).to.deep.equal(expected.statuses);
  expect({ FAIL_TO_PASS: report.failToPass, PASS_TO_PASS: report.passToPass }).to.deep.equal(
    expected.tests_status,
  );
}
