// Calls to a trajectory: the builders, and the counts that must add up.
import { create } from '@bufbuild/protobuf';
import { type SessionStats, SessionStatsSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { Drift, Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { PolarError } from '../../common/errors.ts';
import { BUILDERS, type BuilderName, listed } from '../../common/specs/catalogue.ts';
import { byStart, type Call, type MaskedReason } from './call.ts';
import { driftsOf } from './drift.ts';
import { type Branch, branches } from './forest.ts';
import { traceOf } from './traces.ts';

/** What a builder makes of the calls of one attempt. */
export interface Build {
  /** By start of their first call. */
  readonly traces: Trace[];
  readonly stats: SessionStats;
  readonly drift: Drift[];
  /** Smallest and largest of the calls that are trained; 0 when none is. */
  readonly policyVersionMin: bigint;
  readonly policyVersionMax: bigint;
}

/** How each builder cuts the calls into branches; the order of the calls means nothing. */
const builders: Record<BuilderName, (calls: readonly Call[]) => Branch[]> = {
  prefix_merging: branches,
  per_request: (calls) =>
    calls
      .filter((call) => call.trainedTokens > 0)
      .sort(byStart)
      .map((call) => [call]),
};

/** per_request where the task names none. Throws UNKNOWN_BUILDER. */
export function builderName(strategy: string | undefined): BuilderName {
  if (strategy === undefined || strategy === '') return 'per_request';
  const name = BUILDERS.find((known) => known === strategy);
  if (name !== undefined) return name;
  throw new PolarError('UNKNOWN_BUILDER', `no builder ${strategy}; there are ${listed(BUILDERS)}`);
}

/** Build the traces of an attempt. Linear in the ids of the calls and of the traces. */
export function build(builder: BuilderName, calls: readonly Call[]): Build {
  const chosen = builders[builder](calls);
  const traces = chosen.map(traceOf);
  const versions = chosen
    .flat()
    .filter((call) => call.trainedTokens > 0)
    .map((call) => call.policyVersion);
  const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
  versions.sort(compare);
  return {
    traces,
    stats: statsOf(calls, chosen, traces),
    drift: driftsOf(calls),
    policyVersionMin: versions[0] ?? 0n,
    policyVersionMax: versions.at(-1) ?? 0n,
  };
}

/** What was sampled counts, known by its ids or not. */
function countsOf(call: Call): { sampledTokens: number; maskedReason: MaskedReason | undefined } {
  const { sampledIds, maskedReason, usageCompletionTokens = 0 } = call;
  if (!call.noTokenIds) return { sampledTokens: sampledIds.length, maskedReason };
  return {
    sampledTokens: usageCompletionTokens,
    maskedReason: usageCompletionTokens > 0 ? 'no_token_ids' : undefined,
  };
}

function statsOf(
  calls: readonly Call[],
  chosen: readonly Readonly<Branch>[],
  traces: readonly Trace[],
): SessionStats {
  const masked = new Map<string, number>();
  let [sampled, trained, usageMismatches] = [0, 0, 0];
  for (const call of calls) {
    const { sampledTokens, maskedReason } = countsOf(call);
    sampled += sampledTokens;
    trained += call.trainedTokens;
    if (maskedReason !== undefined) {
      const count = sampledTokens - call.trainedTokens;
      masked.set(maskedReason, (masked.get(maskedReason) ?? 0) + count);
    }
    if (call.noTokenIds) continue;
    if ((call.usageCompletionTokens ?? call.sampledIds.length) !== call.sampledIds.length) usageMismatches++;
  }
  const inTraces = chosen.flat().reduce((sum, call) => sum + call.sampledIds.length, 0);
  const slots = traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0) / 4;
  return create(SessionStatsSchema, {
    calls: calls.length,
    traces: traces.length,
    trainedTokens: BigInt(trained),
    // In one order, so that the same records give the same bytes.
    maskedTokens: Object.fromEntries([...masked].sort().map(([reason, count]) => [reason, BigInt(count)])),
    sampledTokens: BigInt(sampled),
    contextTokens: BigInt(slots - inTraces),
    usageMismatches,
  });
}
