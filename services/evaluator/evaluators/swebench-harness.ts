// A row of SWE-bench: its tests run on the agent's changes in a fresh sandbox, and SWE-bench's rules say whether they resolve it.
import type { JsonObject } from '@bufbuild/protobuf';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { grantedSeconds } from '../../common/specs/strategies.ts';
import {
  isFailOnly,
  logParserOf,
  type SwebenchHarnessConfig,
  swebenchHarnessConfig,
} from '../../common/specs/swebench-harness.ts';
import { tailOf } from '../domain/evaluation.ts';
import { filesOf } from '../domain/patch.ts';
import { exitCodeIn, logOf, scriptOf, statusesIn } from '../domain/swebench-log.ts';
import { LOG_READERS } from '../domain/swebench-parsers.ts';
import { type Report, type Row, reportOf, unresolved } from '../domain/swebench-report.ts';
import { execIn } from '../sandboxes/repository.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import { putTests, type Tests } from '../sandboxes/test-patch.ts';
import type { Evaluation, Evaluator } from './evaluator.ts';
import { gradeChanges } from './grade-changes.ts';
import { bothOf, type Grade, limitMs, type PatchJob, TAIL_CHARS, zero } from './grade-patch.ts';
import { runTests, toldOf } from './run-tests.ts';

const SCRIPT_FILE = '/polar/session/evaluation.sh';
const NO_BASH = 'no bash';
/** In one stream, as SWE-bench reads it: markers and results may be on either. Standard error of its own is not the script's. */
const RUN_SCRIPT = `command -v bash >/dev/null || { echo '${NO_BASH}' >&2; exit 127; }; exec bash ${SCRIPT_FILE} 2>&1`;

export const swebenchHarness: Evaluator = {
  name: 'swebench_harness',
  summary:
    "Runs the tests of a SWE-bench row on the changes in a fresh sandbox: 1.0 if these resolve it by SWE-bench's rules, else 0.0.",
  async evaluate(ctx, evaluation, signal) {
    const config = configOf(evaluation);
    return await gradeChanges(ctx, jobOf(config, evaluation), signal);
  },
};

const configOf = ({ work }: Evaluation): SwebenchHarnessConfig =>
  checkStrict(swebenchHarnessConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

function jobOf(config: SwebenchHarnessConfig, evaluation: Evaluation): PatchJob {
  const run = { config, evaluation };
  const tests = testsOf(config);
  if (tests === undefined) return { ...run, test: (fresh) => gradeRow(run, fresh) };
  return {
    ...run,
    before: (fresh) => checkTests(run, tests, fresh),
    test: (fresh) => gradeWithTests(run, tests, fresh),
  };
}

interface RowRun {
  readonly config: SwebenchHarnessConfig;
  readonly evaluation: Evaluation;
}

/** What is to be put there before the tests run; undefined where the row's script does it, or where there is nothing. */
function testsOf({ test_command, instance }: SwebenchHarnessConfig): Tests | undefined {
  const text = instance.test_patch ?? '';
  if (test_command === undefined || text.trim() === '') return undefined;
  const patch = Buffer.from(text.endsWith('\n') ? text : `${text}\n`);
  const files = filesOf(patch);
  if (files !== undefined) return { patch, files, commit: instance.base_commit ?? '' };
  throw new PolarError(
    'INVALID_TASK',
    'evaluator.config.instance.test_patch: is no unified diff that can be read',
  );
}

/** Without changes it is never the agent who is in its way. Throws INVALID_TASK. */
async function checkTests(run: RowRun, tests: Tests, fresh: Sandbox): Promise<void> {
  const output = await put(run, tests, 'check', fresh);
  if (output.result.exitCode === 0) return;
  const why = tailOf(bothOf(output), 500).trim();
  throw new PolarError(
    'INVALID_TASK',
    `evaluator.config.instance.test_patch: does not apply to repo_dir before any change: ${why}`,
  );
}

const put = (run: RowRun, tests: Tests, how: 'put' | 'check', fresh: Sandbox): Promise<ExecOutput> =>
  putTests(fresh, run.config.repo_dir, tests, how, limitMs(run, run.config.apply_timeout));

async function gradeWithTests(run: RowRun, tests: Tests, fresh: Sandbox): Promise<Grade> {
  const output = await put(run, tests, 'put', fresh);
  if (output.result.exitCode === 0) return await gradeRow(run, fresh);
  return zero({
    failed_apply_tests: true,
    apply_output_tail: tailOf(bothOf(output), TAIL_CHARS),
    ...toldOfReport(unresolved(rowOf(run.config))),
  });
}

async function gradeRow({ config, evaluation }: RowRun, fresh: Sandbox): Promise<Grade> {
  const limits = {
    testSeconds: config.test_timeout,
    grantedSeconds: grantedSeconds({ strategy: 'swebench_harness', config }),
  };
  const command = await commandOf(config, fresh);
  const output = await runTests(evaluation, limits, (timeoutMs) =>
    execIn(fresh, config.repo_dir, command, timeoutMs),
  );
  if (Buffer.from(output.stderr).toString().trim() === NO_BASH) {
    throw new PolarError(
      'INVALID_TASK',
      "evaluator.config.instance.eval_script: the evaluation's sandbox has no bash",
    );
  }
  return gradeOutput(config, output);
}

async function commandOf({ test_command, instance }: SwebenchHarnessConfig, fresh: Sandbox): Promise<string> {
  if (test_command !== undefined) return `{ ${test_command}\n} 2>&1`;
  await fresh.putFile(SCRIPT_FILE, Buffer.from(scriptOf(instance.eval_script ?? '')));
  return RUN_SCRIPT;
}

function gradeOutput(config: SwebenchHarnessConfig, output: ExecOutput): Grade {
  const printed = Buffer.from(output.stdout).toString();
  const { timedOut, exitCode } = output.result;
  const isScript = config.test_command === undefined;
  const log = isScript ? printed : logOf(printed, exitCode);
  const row = rowOf(config);
  const told = timedOut
    ? { invalid: 'its tests did not end' }
    : hidesFailures(row, output)
      ? { invalid: 'its middle is cut, where a failure may be told' }
      : statusesIn(log, LOG_READERS[logParserOf(config)]);
  const report = 'invalid' in told ? unresolved(row) : reportOf(row, told.statuses);
  const isResolved = report.resolution === 'FULL';
  return {
    reward: isResolved ? 1 : 0,
    told: {
      resolved: isResolved,
      ...toldOfReport(report),
      tests_expected: row.failToPass.length + row.passToPass.length,
      tests_parsed: 'invalid' in told ? 0 : told.statuses.size,
      ...('invalid' in told && { invalid_log: told.invalid }),
      ...toldOf(output),
      // The script's own is that of what it does last.
      ...(isScript && { test_exit_code: exitCodeIn(printed) ?? null }),
    },
  };
}

/** Of what is not told to have failed, that says nothing. */
const hidesFailures = ({ failOnly }: Row, { result }: ExecOutput): boolean =>
  failOnly && result.droppedOutputBytes > 0n;

const rowOf = ({ instance }: SwebenchHarnessConfig): Row => ({
  failToPass: instance.FAIL_TO_PASS,
  passToPass: instance.PASS_TO_PASS,
  failOnly: isFailOnly(instance),
});

const toldOfReport = ({ resolution, failToPass, passToPass }: Report): JsonObject => ({
  resolution,
  FAIL_TO_PASS: { ...failToPass },
  PASS_TO_PASS: { ...passToPass },
});
