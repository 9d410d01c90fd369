// Which sampled ids of a call may be trained, by the call alone; what depends on other calls is in policies.ts.
import { type BuilderPolicies, DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { type Call, deadReason, type Masking } from './call.ts';

/** What the mask of a call is read off. */
export type MaskSource = Pick<
  Call,
  'trainable' | 'role' | 'finishReason' | 'sampledIds' | 'logprobs' | 'invalidToolCall'
>;

const LOWEST_LOGPROB = -9998;

/** Zeros, one for each sampled id. */
const emptyMask = ({ sampledIds }: MaskSource): Uint8Array => new Uint8Array(sampledIds.length);

/** All or none by the call, else the ids with a logprob of their own, less what a policy masks. `empty` becomes the mask. */
export function maskOf(
  call: MaskSource,
  policies: BuilderPolicies = DEFAULT_POLICIES,
  empty = emptyMask(call),
): Masking {
  const { logprobs } = call;
  const whole = wholeReason(call, policies);
  if (whole !== undefined) return maskedWhole(empty, whole);
  // Logprobs that are not as many as the ids are never paired with them by position.
  if (logprobs?.length !== empty.length) return maskedWhole(empty, 'no_logprob');
  const byLogprob = withLogprobs(empty, logprobs);
  if (policies.missing_logprobs === 'mask_call' && byLogprob.masked.size > 0) {
    return maskedWhole(empty.fill(0), 'no_logprob');
  }
  const later = laterReason(call, policies);
  if (later !== undefined) return maskedMore(byLogprob, later);
  const { reasoning_end_ids: endIds } = policies;
  if (endIds === undefined) return byLogprob;
  return maskedMore(byLogprob, 'reasoning', 0, behindFirst(call.sampledIds, endIds));
}

/** The same with the ids from `from` to before `to` masked as well; those that are already keep their reason. */
export const maskedMore = (given: Masking, reason: string, from = 0, to = given.mask.length): Masking =>
  maskedInParts(given, [{ reason, from, to }]);

export interface MaskedPart {
  readonly reason: string;
  readonly from: number;
  readonly to: number;
}

/** The same with many parts masked: the mask is copied once. */
export function maskedInParts(given: Masking, parts: readonly MaskedPart[]): Masking {
  const mask = given.mask.slice();
  const masked = new Map(given.masked);
  let { trainedTokens } = given;
  for (const { reason, from, to } of parts) {
    // Nothing is left to mask.
    if (trainedTokens === 0) break;
    let count = 0;
    for (let i = from; i < to; i++) {
      count += mask[i] as number;
      mask[i] = 0;
    }
    if (count > 0) masked.set(reason, (masked.get(reason) ?? 0) + count);
    trainedTokens -= count;
  }
  return trainedTokens === given.trainedTokens ? given : { mask, trainedTokens, masked };
}

const maskedWhole = (empty: Uint8Array, reason: string): Masking => ({
  mask: empty,
  trainedTokens: 0,
  masked: maskedFor(reason, empty.length),
});

/** Nearly all calls. */
const NOTHING_MASKED: ReadonlyMap<string, number> = new Map();

const maskedFor = (reason: string, ids: number): ReadonlyMap<string, number> =>
  ids === 0 ? NOTHING_MASKED : new Map([[reason, ids]]);

/** For these a call is not even looked into: what it lacks besides is not counted. */
function wholeReason(call: MaskSource, policies: BuilderPolicies): string | undefined {
  if (!call.trainable && policies.frozen_models === 'mask') return 'frozen';
  if (call.role === 'side' && policies.side_calls === 'mask') return 'side';
  const dead = deadReason(call);
  return dead !== undefined && policies.interrupted === 'mask' ? dead : undefined;
}

function laterReason(call: MaskSource, policies: BuilderPolicies): string | undefined {
  if (call.finishReason === 'length' && policies.truncated === 'mask') return 'truncated';
  return call.invalidToolCall && policies.invalid_tool_calls === 'mask' ? 'invalid_tool_call' : undefined;
}

function withLogprobs(mask: Uint8Array, logprobs: Float32Array): Masking {
  let trainedTokens = 0;
  for (let i = 0; i < mask.length; i++) {
    const logprob = logprobs[i] as number;
    // Written so that NaN fails it.
    if (!(logprob <= 0 && logprob > LOWEST_LOGPROB)) continue;
    mask[i] = 1;
    trainedTokens++;
  }
  return { mask, trainedTokens, masked: maskedFor('no_logprob', mask.length - trainedTokens) };
}

/** Index behind the first place at which `part` stands in `ids`; 0 where it stands nowhere. */
function behindFirst(ids: Int32Array, part: readonly number[]): number {
  for (let at = ids.indexOf(part[0] as number); at >= 0; at = ids.indexOf(part[0] as number, at + 1)) {
    if (part.every((id, i) => ids[at + i] === id)) return at + part.length;
  }
  return 0;
}
