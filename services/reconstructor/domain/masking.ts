// Which sampled ids of a call may be trained, by the call alone; what depends on other calls is in policies.ts.
import { type BuilderPolicies, DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { type Call, deadReason, type Masking } from './call.ts';

/** What the mask of a call is read off. */
export type MaskSource = Pick<
  Call,
  'trainable' | 'role' | 'finishReason' | 'sampledIds' | 'logprobs' | 'invalidToolCall'
>;

const LOWEST_LOGPROB = -9998;

/** All or none by the call, else the ids with a logprob of their own, less what a policy masks. */
export function maskOf(call: MaskSource, policies: BuilderPolicies = DEFAULT_POLICIES): Masking {
  const whole = wholeReason(call, policies);
  if (whole !== undefined) return maskedWhole(call.sampledIds.length, whole);
  const byLogprob = withLogprobs(call);
  if (policies.missing_logprobs === 'mask_call' && byLogprob.masked.size > 0) {
    return maskedWhole(call.sampledIds.length, 'no_logprob');
  }
  const later = laterReason(call, policies);
  if (later !== undefined) return maskedMore(byLogprob, later);
  const { reasoning_end_ids: endIds } = policies;
  if (endIds === undefined) return byLogprob;
  return maskedMore(byLogprob, 'reasoning', 0, behindFirst(call.sampledIds, endIds));
}

/** The same with the ids from `from` to before `to` masked as well; those that are already keep their reason. */
export function maskedMore(given: Masking, reason: string, from = 0, to = given.mask.length): Masking {
  const mask = given.mask.slice();
  let count = 0;
  for (let i = from; i < to; i++) {
    count += mask[i] as number;
    mask[i] = 0;
  }
  if (count === 0) return given;
  const masked = new Map(given.masked).set(reason, (given.masked.get(reason) ?? 0) + count);
  return { mask, trainedTokens: given.trainedTokens - count, masked };
}

function maskedWhole(length: number, reason: string): Masking {
  const masked = new Map(length > 0 ? [[reason, length]] : []);
  return { mask: new Uint8Array(length), trainedTokens: 0, masked };
}

/** For these a call is not even looked into: what it lacks besides is not counted. */
function wholeReason(call: MaskSource, policies: BuilderPolicies): string | undefined {
  if (!call.trainable && policies.frozen_models === 'mask') return 'frozen';
  if (call.role === 'side' && policies.side_calls === 'mask') return 'side';
  const dead = deadReason(call);
  if (dead !== undefined && policies.interrupted === 'mask') return dead;
  // Logprobs that are not as many as the ids are never paired with them by position.
  return call.logprobs?.length === call.sampledIds.length ? undefined : 'no_logprob';
}

function laterReason(call: MaskSource, policies: BuilderPolicies): string | undefined {
  if (call.finishReason === 'length' && policies.truncated === 'mask') return 'truncated';
  return call.invalidToolCall && policies.invalid_tool_calls === 'mask' ? 'invalid_tool_call' : undefined;
}

function withLogprobs({ sampledIds, logprobs }: MaskSource): Masking {
  const mask = new Uint8Array(sampledIds.length);
  let trainedTokens = 0;
  for (let i = 0; i < mask.length; i++) {
    const logprob = logprobs?.[i] ?? Number.NaN;
    // Written so that NaN fails it.
    if (!(logprob <= 0 && logprob > LOWEST_LOGPROB)) continue;
    mask[i] = 1;
    trainedTokens++;
  }
  const holes = mask.length - trainedTokens;
  return { mask, trainedTokens, masked: new Map(holes > 0 ? [['no_logprob', holes]] : []) };
}

/** Index behind the first place at which `part` stands in `ids`; 0 where it stands nowhere. */
function behindFirst(ids: Int32Array, part: readonly number[]): number {
  for (let at = ids.indexOf(part[0] as number); at >= 0; at = ids.indexOf(part[0] as number, at + 1)) {
    if (part.every((id, i) => ids[at + i] === id)) return at + part.length;
  }
  return 0;
}
