// One recorded model call, as the builders see it.
import type { TokenNode } from './token-tree.ts';

/** Why a sampled id may not be trained. */
export type MaskedReason =
  | 'frozen'
  | 'side'
  | 'cancelled'
  | 'error'
  | 'aborted'
  | 'no_logprob'
  | 'no_token_ids';

export interface Call {
  readonly callId: string;
  /** Order in which the calls began. */
  readonly startSeq: number;
  /** Order in which they ended. */
  readonly endSeq: number;
  /** What the engine was given, as a place in the session's token tree. */
  readonly prompt: TokenNode;
  /** The prompt and what was sampled after it. */
  readonly end: TokenNode;
  readonly sampledIds: Int32Array;
  /** As many as the engine gave; undefined where it gave none. A hole is NaN, -9999 or positive. */
  readonly logprobs: Float32Array | undefined;
  readonly finishReason: string;
  readonly model: string;
  readonly policyVersion: bigint;
  readonly trainable: boolean;
  /** The engine told no ids: `usageCompletionTokens` is all that is known of what was sampled. */
  readonly noTokenIds: boolean;
  readonly role: string;
  /** Digests of the conversation's messages as sent; equal digest = equal content. */
  readonly messages: readonly string[];
  /** Digest of the reply; null when it was never delivered. */
  readonly reply: string | null;
  /** The engine's own count of sampled ids, where it gave one. */
  readonly usageCompletionTokens: number | undefined;
  /** uint8, one for each sampled id: 1 = may be trained. */
  readonly mask: Uint8Array;
  /** Ones in `mask`. */
  readonly trainedTokens: number;
  /** Why ids are masked; undefined when none is. */
  readonly maskedReason: MaskedReason | undefined;
}

/** What the mask of a call is read off. */
export type MaskSource = Pick<Call, 'trainable' | 'role' | 'finishReason' | 'sampledIds' | 'logprobs'>;

const LOWEST_LOGPROB = -9998;

/** True for a call whose reply was never delivered whole. */
export const isDead = (call: Pick<Call, 'finishReason'>): boolean => deadReason(call) !== undefined;

function deadReason({ finishReason }: Pick<Call, 'finishReason'>): MaskedReason | undefined {
  if (finishReason === 'cancelled' || finishReason === 'error') return finishReason;
  return finishReason === 'abort' ? 'aborted' : undefined;
}

/** Which sampled ids may be trained: all or none by the call, else those with a logprob of their own. */
export function maskOf(call: MaskSource): Pick<Call, 'mask' | 'trainedTokens' | 'maskedReason'> {
  const { sampledIds, logprobs } = call;
  const mask = new Uint8Array(sampledIds.length);
  const whole = wholeReason(call);
  if (whole !== undefined || logprobs === undefined) {
    const maskedReason = mask.length > 0 ? (whole ?? 'no_logprob') : undefined;
    return { mask, trainedTokens: 0, maskedReason };
  }
  let trainedTokens = 0;
  for (const [i, logprob] of logprobs.entries()) {
    // Written so that NaN fails it.
    if (!(logprob <= 0 && logprob > LOWEST_LOGPROB)) continue;
    mask[i] = 1;
    trainedTokens++;
  }
  return { mask, trainedTokens, maskedReason: trainedTokens < mask.length ? 'no_logprob' : undefined };
}

function wholeReason(call: MaskSource): MaskedReason | undefined {
  if (!call.trainable) return 'frozen';
  if (call.role === 'side') return 'side';
  // Logprobs that are not as many as the ids are never paired with them by position.
  const unpaired = call.logprobs !== undefined && call.logprobs.length !== call.sampledIds.length;
  return deadReason(call) ?? (unpaired ? 'no_logprob' : undefined);
}

/** By start, whatever order the calls are given in. */
export const byStart = (a: Call, b: Call): number =>
  a.startSeq - b.startSeq || a.endSeq - b.endSeq || (a.callId < b.callId ? -1 : 1);
