// What a rewards_command prints: the session's reward, one for each of some calls, or both. Calls are checked against its own.
import { z } from 'zod';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError, type Reason } from '../../common/errors.ts';
import { parseLenient } from '../../common/lenient-json.ts';
import { tailOf } from '../domain/evaluation.ts';
import { type CallReward, REWARDED_CALLS_MAX } from './evaluator.ts';

/** Largest reward, above or below 0; beyond: TRACE_REWARDS_INVALID. */
const REWARD_MAX = 1_000_000;
const TAIL_CHARS = 500;
const WHERE = 'evaluator.config.rewards_command';

export interface PrintedRewards {
  /** Of the session; undefined: that of the tests. */
  readonly reward: number | undefined;
  readonly traceRewards: CallReward[];
}

const rewardSchema = z.number().min(-REWARD_MAX).max(REWARD_MAX);

/** One reward at least, and every key is a call of the session. Throws TRACE_REWARDS_INVALID. */
export function rewardsIn(output: string, callIds: ReadonlySet<string>): PrintedRewards {
  const printed = parseLenient(output);
  if (printed === undefined)
    throw invalid(`printed no JSON: ${tailOf(Buffer.from(output), TAIL_CHARS).trim()}`);
  return checkedRewards(printed, callIds, `what ${WHERE} printed`, 'TRACE_REWARDS_INVALID');
}

/** The same of a value. Throws the reason. */
export function checkedRewards(
  printed: unknown,
  callIds: ReadonlySet<string>,
  what: string,
  reason: Reason,
): PrintedRewards {
  checkCount(printed, what, reason);
  const ofTraces = z.record(z.string(), rewardSchema).superRefine((given, issues) => {
    for (const key of Object.keys(given).filter((one) => !callIds.has(one))) {
      issues.addIssue({ code: 'custom', path: [key], message: 'the session has no such call' });
    }
  });
  const shape = z
    .strictObject({ reward: rewardSchema.optional(), trace_rewards: ofTraces.optional() })
    .refine(({ reward, trace_rewards }) => (reward ?? trace_rewards) !== undefined, {
      error: 'must have reward, trace_rewards, or both',
    });
  const given = checkStrict(shape, printed, what, reason);
  const traceRewards = Object.entries(given.trace_rewards ?? {}).map(([callId, reward]) => ({
    callId,
    reward,
  }));
  return { reward: given.reward, traceRewards };
}

/** Before each is looked at: whatever was given is here. */
function checkCount(printed: unknown, what: string, reason: Reason): void {
  const calls = Object.keys((printed as { trace_rewards?: object } | null)?.trace_rewards ?? {}).length;
  if (calls <= REWARDED_CALLS_MAX) return;
  throw new PolarError(reason, `${what} has trace_rewards of ${calls} calls, above ${REWARDED_CALLS_MAX}`);
}

export const invalid = (what: string): PolarError =>
  new PolarError('TRACE_REWARDS_INVALID', `${WHERE} ${what}`);
