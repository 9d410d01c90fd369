// What may become of the policy document: publishing a version, pausing, resuming.
import { create } from '@bufbuild/protobuf';
import {
  type PauseMode,
  type PauseSpan,
  PauseSpanSchema,
  type Policy,
  Policy_Phase,
  PolicySchema,
} from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { PolarError } from '../../common/errors.ts';

/** The last version that a number of JSON holds exactly; above: INVALID_REQUEST. */
export const POLICY_VERSION_MAX = Number.MAX_SAFE_INTEGER;
/** Pauses are remembered so long: a run has at most 24 h of its own, and its capability outlives that by as much. */
const PAUSES_KEPT_MS = 48 * 3600 * 1000;
/** The document names so many; above, neighbours are joined. */
const PAUSES_KEPT_MAX = 256;

export const isServing = ({ phase }: Policy): boolean =>
  phase === Policy_Phase.SERVING || phase === Policy_Phase.UNSPECIFIED;

/** Weights by the trainer's number and the engines' word. */
export interface Version {
  readonly policyVersion: bigint;
  readonly weightVersion: string;
}

/** Undefined: it is published already. Throws INVALID_REQUEST, and VERSION_EXISTS where the number is of other weights. */
export function published(policy: Policy, { policyVersion, weightVersion }: Version): Policy | undefined {
  if (policyVersion < 1n) throw wrongVersion('must be at least 1');
  if (policyVersion > POLICY_VERSION_MAX) throw wrongVersion(`must be at most ${POLICY_VERSION_MAX}`);
  if (policyVersion < policy.policyVersion) {
    throw wrongVersion(`must be at least ${policy.policyVersion}, which is published`);
  }
  if (policyVersion === policy.policyVersion) {
    if (weightVersion === policy.weightVersion) return undefined;
    throw isOfOthers(policy, weightVersion);
  }
  return create(PolicySchema, { ...policy, policyVersion, weightVersion });
}

/** Records carry the number alone where the engine tells none: it says once and for all which weights they are of. */
const isOfOthers = ({ policyVersion, weightVersion }: Policy, other: string): PolarError =>
  new PolarError(
    'VERSION_EXISTS',
    `policy_version ${policyVersion} is published with weight_version ${JSON.stringify(weightVersion)}, not ${JSON.stringify(other)}: other weights have a higher version`,
  );

const wrongVersion = (description: string): PolarError => {
  const fields = [{ field: 'policy_version', description }];
  return new PolarError('INVALID_REQUEST', `policy_version ${description}`, { fields });
};

export interface Pause {
  readonly id: string;
  readonly mode: PauseMode;
  /** Unix time in milliseconds. */
  readonly nowMs: number;
  /** It ends by itself after so long. */
  readonly ttlMs: number;
}

/** Throws PAUSE_IN_PROGRESS. */
export function pausing(policy: Policy, { id, mode, nowMs, ttlMs }: Pause): Policy {
  if (!isServing(policy)) {
    throw new PolarError('PAUSE_IN_PROGRESS', `pause ${policy.pauseId} is in progress; resume it first`);
  }
  const kept = policy.pauses.filter(({ endMs }) => Number(endMs) > nowMs - PAUSES_KEPT_MS);
  while (kept.length >= PAUSES_KEPT_MAX) joinTwo(kept, nowMs);
  const span = create(PauseSpanSchema, { startMs: BigInt(nowMs) });
  return create(PolicySchema, {
    ...policy,
    phase: Policy_Phase.PAUSING,
    mode,
    pauseId: id,
    pauseExpireMs: BigInt(nowMs + ttlMs),
    pauses: [...kept, span],
  });
}

/** Of two neighbours each, those are joined that are shortest together for the time that has passed since. */
function joinTwo(spans: PauseSpan[], nowMs: number): void {
  const parts = spans.slice(1).map((newer, i) => {
    const ageMs = Math.max(1, nowMs - Number(newer.endMs));
    return Number(lengthOf(spans[i] as PauseSpan) + lengthOf(newer)) / ageMs;
  });
  const at = parts.indexOf(Math.min(...parts));
  const [older, newer] = spans.slice(at, at + 2) as [PauseSpan, PauseSpan];
  spans.splice(at, 2, joined(older, newer));
}

/**
 * As long as both, at the place of the newer one: a run that has been through both is told the same, and one that began
 * between them at most so much too much.
 */
function joined(older: PauseSpan, newer: PauseSpan): PauseSpan {
  const endMs = older.endMs > newer.endMs ? older.endMs : newer.endMs;
  return create(PauseSpanSchema, { startMs: endMs - lengthOf(older) - lengthOf(newer), endMs });
}

/** None is shorter than nothing: older meshes ended them by another clock than they had begun by. */
const lengthOf = ({ startMs, endMs }: PauseSpan): bigint => (endMs > startMs ? endMs - startMs : 0n);

/** Calls in flight are where the mode wants them. Undefined: that pause is over. */
export function paused(policy: Policy, id: string): Policy | undefined {
  if (isServing(policy) || policy.pauseId !== id) return undefined;
  return create(PolicySchema, { ...policy, phase: Policy_Phase.PAUSED });
}

/** Undefined: nothing to end. `id` empty: whichever pause, which lasted so long. Throws PAUSE_IN_PROGRESS when another one is. */
export function resumed(policy: Policy, id: string, lastedMs: number): Policy | undefined {
  if (isServing(policy)) return undefined;
  if (id !== '' && id !== policy.pauseId) {
    throw new PolarError('PAUSE_IN_PROGRESS', `the pause in progress is ${policy.pauseId}, not ${id}`);
  }
  const pauses = policy.pauses.map((span) =>
    span.endMs === 0n ? create(PauseSpanSchema, { ...span, endMs: span.startMs + BigInt(lastedMs) }) : span,
  );
  const { policyVersion, weightVersion } = policy;
  return create(PolicySchema, { policyVersion, weightVersion, pauses, phase: Policy_Phase.SERVING });
}
