// A line of `ExportSession RECORDS` (docs/export-format.md), and the law of which of its sampled ids may be trained.
import type { JsonObject } from '@bufbuild/protobuf';

export interface RecordedCall {
  readonly call_id: string;
  readonly prompt_ids: readonly number[];
  readonly sampled_ids: readonly number[];
  /** Null where the engine gave none. */
  readonly logprobs: readonly (number | null)[] | null;
  readonly finish_reason: string;
  readonly model: string;
  readonly policy_version: number;
  /** Only where the weights changed in the middle of it. */
  readonly policy_runs?: readonly PolicyRun[];
  readonly trainable: boolean;
  readonly role: string;
  readonly engine: string;
  /** raw, processed, or empty. */
  readonly logprob_mode: string;
  readonly sampling: JsonObject;
  /** The engine's own counts, where it gave them. */
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  readonly no_token_ids: boolean;
}

interface PolicyRun {
  readonly policy_version: number;
  readonly start: number;
  readonly length: number;
}

/** By which weights each of its ids was sampled. */
export function versionsOf({ sampled_ids, policy_version, policy_runs = [] }: RecordedCall): number[] {
  const versions = new Array<number>(sampled_ids.length).fill(policy_version);
  for (const run of policy_runs) versions.fill(run.policy_version, run.start, run.start + run.length);
  return versions;
}

/** What was sampled in a call counts, known by its ids or not. */
export const sampledTokens = ({ no_token_ids, usage, sampled_ids }: RecordedCall): number =>
  no_token_ids ? (usage?.completion_tokens ?? 0) : sampled_ids.length;

const DEAD: Readonly<Record<string, string>> = { cancelled: 'cancelled', error: 'error', abort: 'aborted' };
const LOWEST_LOGPROB = -9998;

/** What the task's builder was told of calls that are usually not trained: `train` lets them be. */
export type Policies = Readonly<Record<string, unknown>>;

/** Why no id of a call may be trained; undefined where each is judged by its own logprob. */
export function wholeReason(call: RecordedCall, policies: Policies): string | undefined {
  if (call.no_token_ids) return 'no_token_ids';
  if (!call.trainable && policies['frozen_models'] !== 'train') return 'frozen';
  if (call.role === 'side' && policies['side_calls'] !== 'train') return 'side';
  const dead = DEAD[call.finish_reason];
  if (dead !== undefined && policies['interrupted'] !== 'train') return dead;
  return call.logprobs?.length === call.sampled_ids.length ? undefined : 'no_logprob';
}

/** How many ids of a call the record alone keeps from being trained, and why; a builder may have further reasons. */
export function maskedByRecord(
  call: RecordedCall,
  policies: Policies,
): readonly [reason: string, count: number] {
  const whole = wholeReason(call, policies);
  if (whole !== undefined) return [whole, sampledTokens(call)];
  return ['no_logprob', call.sampled_ids.filter((_, i) => idReason(call, i) !== undefined).length];
}

/** Why one sampled id may not be trained, where the whole call may. */
export function idReason(call: RecordedCall, index: number): string | undefined {
  const logprob = call.logprobs?.[index] ?? Number.NaN;
  return logprob <= 0 && logprob > LOWEST_LOGPROB ? undefined : 'no_logprob';
}
