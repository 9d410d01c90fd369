// Configuration of `swebench_harness`: a row of SWE-bench's data sets, and what only its package knows of it.
import { z } from 'zod';
import { LOG_PARSERS, type LogParser, listed } from './catalogue.ts';
import { anyArgument, argument } from './faults-of.ts';
import { orJsonText, patchOptions } from './grading-options.ts';
import { parserNamed, parserOfRepository, tellsFailuresAlone } from './log-parsers.ts';
import { columnOf, PARSERS_BY_ROW, parserByRow } from './log-parsers-by-row.ts';

export const START_MARKER = '>>>>> Start Test Output';
export const END_MARKER = '>>>>> End Test Output';

const EVAL_TYPES = ['pass_and_fail', 'fail_only'] as const;

/** Columns may be null where a data set does not have them for a row. */
const text = z.string().nullish();
const testNames = orJsonText(
  z.array(z.string().min(1), { error: 'must be a list of tests, or its JSON text' }),
);

/** Other columns are taken, and do not count. */
const row = z.looseObject(
  {
    instance_id: z.string().min(1),
    repo: z.string().min(1),
    FAIL_TO_PASS: testNames,
    PASS_TO_PASS: testNames,
    base_commit: anyArgument.nullish(),
    test_patch: text,
    /** [version 5 of the data sets] Puts the tests there, and runs them between two markers. */
    eval_script: text,
    /** [version 5] */
    log_parser: text,
    /** [version 5] `fail_only`: a test that is not told has passed. */
    eval_type: z.enum(EVAL_TYPES).nullish(),
    /** Of its repository. Some logs are other ones in some versions. */
    version: z.unknown().optional(),
  },
  { error: ({ code }) => (code === 'invalid_type' ? 'must be a row, or its JSON text' : undefined) },
);

const harness = z.strictObject({
  ...patchOptions,
  instance: orJsonText(row),
  /** In place of the row's eval_script; the row's test_patch is applied before it. */
  test_command: argument.optional(),
  /** In place of the row's, and of the one that its repository has. */
  log_parser: z.string().optional(),
});
type Harness = z.output<typeof harness>;

/** All that the row and the configuration have to say together. */
const isGradable: z.core.CheckFn<Harness> = ({ value, issues }) => {
  const { instance, test_command } = value;
  const fault = (path: string[], message: string): void => {
    issues.push({ code: 'custom', path, message, input: value });
  };
  if (instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length === 0) {
    fault(['instance', 'FAIL_TO_PASS'], 'must name a test, or PASS_TO_PASS must');
  }
  if (test_command === undefined) checkScript(instance.eval_script ?? '', fault);
  else if (!isPatch(instance.test_patch ?? '')) {
    fault(['instance', 'test_patch'], 'must be a unified diff');
  }
  checkParser(value, fault);
};

type Fault = (path: string[], message: string) => void;

function checkScript(script: string, fault: Fault): void {
  if (script === '') fault(['test_command'], 'must be given, as the row has no eval_script');
  else if (!(script.includes(START_MARKER) && script.includes(END_MARKER))) {
    fault(['instance', 'eval_script'], `must tell where tests begin and end: ${START_MARKER}, ${END_MARKER}`);
  }
}

const isPatch = (patch: string): boolean => patch.trim() === '' || /^(?:diff --git|---) /m.test(patch);

function checkParser({ log_parser, instance }: Harness, fault: Fault): void {
  const known = `there are ${listed([...LOG_PARSERS, ...PARSERS_BY_ROW])}`;
  const named = log_parser ?? instance.log_parser ?? undefined;
  const parser = named === undefined ? parserOfRepository(instance.repo) : parserNamed(named);
  if (named === undefined && parser === undefined) {
    fault(['log_parser'], `must be given, as none is known for ${instance.repo}; ${known}`);
  } else if (parser === undefined) {
    const path = log_parser === undefined ? ['instance', 'log_parser'] : ['log_parser'];
    fault(path, `${named} is not known; ${known}`);
  } else if (parserByRow(parser, instance) === undefined) {
    fault(['instance', columnOf(parser)], `must be one for which ${parser} is known, or give log_parser`);
  }
}

/** Names and defaults of the reference system; `test_command` and `log_parser` are the mesh's. */
export const swebenchHarnessConfig = harness.check(isGradable);
export type SwebenchHarnessConfig = z.output<typeof swebenchHarnessConfig>;

/** What reads the log; the configuration is checked. */
export function logParserOf({ log_parser, instance }: SwebenchHarnessConfig): LogParser {
  const named = log_parser ?? instance.log_parser ?? undefined;
  const parser = named === undefined ? parserOfRepository(instance.repo) : parserNamed(named);
  return (parser && parserByRow(parser, instance)) ?? 'parse_log_pytest';
}

/** Whether tests pass that are not told to have failed: as the row says, or as rows of its repository are. */
export const isFailOnly = ({ eval_type, repo }: SwebenchHarnessConfig['instance']): boolean =>
  eval_type == null ? tellsFailuresAlone(repo) : eval_type === 'fail_only';
