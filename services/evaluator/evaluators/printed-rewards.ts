// What a rewards_command prints: a reward for each of some calls, checked against the session's own.
import { z } from 'zod';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { parseLenient } from '../../common/lenient-json.ts';
import { tailOf } from '../domain/evaluation.ts';
import { type CallReward, REWARDED_CALLS_MAX } from './evaluator.ts';

/** Largest reward, above or below 0; beyond: TRACE_REWARDS_INVALID. */
const REWARD_MAX = 1_000_000;
const TAIL_CHARS = 500;
const WHERE = 'evaluator.config.rewards_command';

/** Every key is a call of the session, every value a reward. Throws TRACE_REWARDS_INVALID. */
export function rewardsIn(output: string, callIds: ReadonlySet<string>): CallReward[] {
  const printed = parseLenient(output);
  if (printed === undefined)
    throw invalid(`printed no JSON: ${tailOf(Buffer.from(output), TAIL_CHARS).trim()}`);
  checkCount(printed);
  const shape = z.strictObject({
    trace_rewards: z
      .record(z.string(), z.number().min(-REWARD_MAX).max(REWARD_MAX))
      .superRefine((given, issues) => {
        for (const key of Object.keys(given).filter((one) => !callIds.has(one))) {
          issues.addIssue({ code: 'custom', path: [key], message: 'the session has no such call' });
        }
      }),
  });
  const { trace_rewards } = checkStrict(shape, printed, `what ${WHERE} printed`, 'TRACE_REWARDS_INVALID');
  return Object.entries(trace_rewards).map(([callId, reward]) => ({ callId, reward }));
}

/** Before each is looked at: whatever a command prints is here. */
function checkCount(printed: unknown): void {
  const calls = Object.keys((printed as { trace_rewards?: object } | null)?.trace_rewards ?? {}).length;
  if (calls > REWARDED_CALLS_MAX)
    throw invalid(`printed trace_rewards of ${calls} calls, above ${REWARDED_CALLS_MAX}`);
}

export const invalid = (what: string): PolarError =>
  new PolarError('TRACE_REWARDS_INVALID', `${WHERE} ${what}`);
