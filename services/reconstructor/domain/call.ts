// One recorded model call, as the builders see it.
import type { ExpertRows } from './experts.ts';
import type { Images } from './images.ts';
import type { MessageNode } from './message-tree.ts';
import type { TokenNode } from './token-tree.ts';

/** Sampled ids by the weights that sampled them: `length` ids from `start` on, counted in the call's sampled ids. */
export interface PolicyRun {
  readonly policyVersion: bigint;
  readonly start: number;
  readonly length: number;
}

/** Which sampled ids are trained, and why the others are not. */
export interface Masking {
  /** uint8, one for each sampled id: 1 = trained. */
  readonly mask: Uint8Array;
  /** Ones in `mask`. */
  readonly trainedTokens: number;
  /** Zeros in `mask`, by reason. */
  readonly masked: ReadonlyMap<string, number>;
}

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
  /** Empty where all sampled ids are policyVersion's. */
  readonly policyRuns: readonly PolicyRun[];
  readonly trainable: boolean;
  /** Experts that its ids were routed to; undefined where nothing is known of that. */
  readonly experts: ExpertRows | undefined;
  /** Why it has none of its own although its engine was asked; empty: it has, or was not. */
  readonly expertsFault: string;
  /** The engine told no ids: `usageCompletionTokens` is all that is known of what was sampled. */
  readonly noTokenIds: boolean;
  readonly role: string;
  /** The conversation's messages as sent, by digest; equal digest = equal content. */
  readonly messages: MessageNode;
  /** Those of the attempt, by the messages that hold them. */
  readonly images: Images;
  /** Digest of the reply; null when it was never delivered. */
  readonly reply: string | null;
  /** The reply has a tool call that cannot be read. */
  readonly invalidToolCall: boolean;
  /** The engine's own count of sampled ids, where it gave one. */
  readonly usageCompletionTokens: number | undefined;
}

/** A call with what a builder's policies make of it. */
export interface MaskedCall extends Call, Masking {}

/** True for a call whose reply was never delivered whole. */
export const isDead = (call: Pick<Call, 'finishReason'>): boolean => deadReason(call) !== undefined;

/** Why, for such a call. */
export function deadReason({ finishReason }: Pick<Call, 'finishReason'>): string | undefined {
  if (finishReason === 'cancelled' || finishReason === 'error') return finishReason;
  return finishReason === 'abort' ? 'aborted' : undefined;
}

/** By start, whatever order the calls are given in. */
export const byStart = (a: Call, b: Call): number =>
  a.startSeq - b.startSeq || a.endSeq - b.endSeq || (a.callId < b.callId ? -1 : 1);
