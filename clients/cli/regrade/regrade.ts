// One session graded again, and how that is told.
import type { JsonObject } from '@bufbuild/protobuf';
import { Outcome, type Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { EvaluatorSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { EvaluateSessionResponse } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import type { PolarError } from '../../../services/common/errors.ts';
import { sha256 } from '../../../services/common/ids.ts';
import { table } from '../output/table.ts';

/** A line of the file. */
export interface Regraded {
  readonly session_id: string;
  readonly task_id: string;
  readonly sample_index: number;
  readonly attempt: number;
  readonly outcome: string;
  /** Null where it had none. */
  readonly old_reward: number | null;
  readonly reward: number;
  readonly evaluation: JsonObject;
  /** By call. */
  readonly trace_rewards: Readonly<Record<string, number>>;
  /** Of the evaluator that was given; null: the task's own. */
  readonly evaluator_sha256: string | null;
}

/** One without a reward. */
export interface NotRegraded {
  readonly session_id: string;
  readonly old_reward: number | null;
  readonly reason: string;
  readonly message: string;
}

/** Equal for equal evaluators, in whatever order their keys came. */
export function digestOf(evaluator: EvaluatorSpec | undefined): string | null {
  if (evaluator === undefined) return null;
  const { strategy, config = {}, env } = evaluator;
  return sha256(JSON.stringify([strategy, sorted(config), sorted(env)]));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, one]) => [key, sorted(one)]);
}

export function regradedOf(
  { taskId, sampleIndex }: Session,
  response: EvaluateSessionResponse,
  evaluatorSha256: string | null,
): Regraded {
  const { sessionId, attempt, outcome, oldReward, reward, evaluation = {}, traceRewards } = response;
  return {
    ...{ session_id: sessionId, task_id: taskId, sample_index: sampleIndex, attempt },
    ...{ outcome: Outcome[outcome], old_reward: oldReward ?? null, reward, evaluation },
    trace_rewards: Object.fromEntries(traceRewards.map(({ callId, reward: own }) => [callId, own])),
    evaluator_sha256: evaluatorSha256,
  };
}

export const notRegraded = (
  { sessionId, reward }: Session,
  { reason, message }: PolarError,
): NotRegraded => ({ session_id: sessionId, old_reward: reward ?? null, reason, message });

/** What the table and the summary need: of ten thousand sessions, whole ones would be too much to hold. */
export function shortOf<Row extends Regraded | NotRegraded>(row: Row): Row {
  if (!('reward' in row)) return row;
  const told = Object.entries(row.evaluation).filter(([, one]) => ['boolean', 'number'].includes(typeof one));
  return { ...row, evaluation: Object.fromEntries(told), trace_rewards: {} };
}

const rewardText = (reward: number | null): string => reward?.toFixed(2) ?? '–';

/** Those that differ look so. */
function rewardTexts(old: number | null, now: number): [string, string] {
  const [before, after] = [rewardText(old), rewardText(now)];
  return before === after && old !== now ? [`${old}`, `${now}`] : [before, after];
}

/** A row for each session, by sample. */
export function regradedTable(rows: readonly (Regraded | NotRegraded)[]): string {
  const cells = rows.map((row) =>
    'reward' in row
      ? [
          ...[row.session_id, ...rewardTexts(row.old_reward, row.reward)],
          ...[resolvedOf(row.evaluation), whyNot(row.evaluation)],
        ]
      : [
          ...[row.session_id, rewardText(row.old_reward), '–', ''],
          `${row.reason}: ${inOneLine(row.message)}`,
        ],
  );
  return table(['session', 'old', 'new', 'resolved', 'why not'], cells);
}

/** Its first line; where that announces faults, with the first of them, which stands in the next one. */
const inOneLine = (message: string): string => message.replace(/:\s*\n\s*/g, ': ').split('\n')[0] ?? '';

const resolvedOf = ({ resolved }: JsonObject): string =>
  typeof resolved === 'boolean' ? (resolved ? 'yes' : 'no') : '';

const WHY: Readonly<Record<string, string>> = {
  empty_generation: 'no changes',
  failed_apply_patch: 'the changes do not apply',
  failed_apply_tests: 'the changes stand in the way of the tests',
  patch_timeout: 'the changes could not be read in time',
  test_timeout: 'the tests did not end',
};

/** Of an evaluation that says that it is not resolved. */
function whyNot(evaluation: JsonObject): string {
  if (evaluation['resolved'] !== false) return '';
  const flag = Object.keys(WHY).find((name) => evaluation[name] === true);
  if (flag !== undefined) return WHY[flag] ?? '';
  if (evaluation['patch_exit_code'] !== undefined) return 'the changes could not be read';
  const { tests_parsed: parsed, tests_expected: expected } = evaluation;
  return parsed === undefined ? '' : `the results differ: ${parsed} read, ${expected} expected`;
}

/** How many have another reward than before, and what that makes of the mean. */
export function summaryOf(rows: readonly (Regraded | NotRegraded)[]): string {
  const all = rows.filter((row) => 'reward' in row);
  const changed = all.filter((row) => row.old_reward !== row.reward);
  const mean = (of: readonly (number | null)[]): string => {
    const rewards = of.filter((one) => one !== null);
    return rewards.length === 0 ? '–' : (rewards.reduce((a, b) => a + b, 0) / rewards.length).toFixed(3);
  };
  const means = `mean reward ${mean(all.map((row) => row.old_reward))} before, ${mean(all.map((row) => row.reward))} now`;
  const without = rows.length - all.length;
  const rest = without === 0 ? '' : `; ${without} without a reward`;
  return `${all.length} graded again, ${changed.length} of them with another reward; ${means}${rest}`;
}
