// Calls to a trajectory: the builders, and the counts that must add up.
import { create } from '@bufbuild/protobuf';
import { type SessionStats, SessionStatsSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { Drift, Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { BuilderName } from '../../common/specs/catalogue.ts';
import { type BuilderPolicies, DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { byStart, type Call, type MaskedCall, type Masking } from './call.ts';
import { clip } from './clip.ts';
import { driftsOf } from './drift.ts';
import { EXPERT_BYTES_MAX, expertBytesOf } from './experts.ts';
import { fitted, TRACE_BYTES_MAX } from './fitted.ts';
import { type Branch, branches } from './forest.ts';
import { withPolicies } from './policies.ts';
import { traceOf } from './traces.ts';

/** What a builder makes of the calls of one attempt. */
export interface Build {
  /** By start of their first call. */
  readonly traces: Trace[];
  readonly stats: SessionStats;
  readonly drift: Drift[];
  /** Smallest and largest that sampled a trained id; 0 when none is trained. */
  readonly policyVersionMin: bigint;
  readonly policyVersionMax: bigint;
}

/** How each builder cuts the calls into branches; the order of the calls means nothing. */
const builders: Record<BuilderName, (calls: readonly MaskedCall[]) => Branch[]> = {
  prefix_merging: branches,
  per_request: (calls) =>
    calls
      .filter((call) => call.trainedTokens > 0)
      .sort(byStart)
      .map((call) => [call]),
};

/** Build the traces of an attempt. Linear in the ids of the calls and of the traces. */
export function build(
  builder: BuilderName,
  calls: readonly Call[],
  policies: BuilderPolicies = DEFAULT_POLICIES,
  traceBytesMax?: number,
): Build {
  const masked = withPolicies(calls, policies);
  return assemble(masked, builders[builder](masked), policies.max_trace_tokens, traceBytesMax);
}

/** Branches of these calls as a trajectory; each is cut at the end to `maxTokens`, and the last ones are left out. */
export function assemble(
  calls: readonly MaskedCall[],
  cuttings: readonly Branch[],
  maxTokens: number | undefined,
  traceBytesMax = TRACE_BYTES_MAX,
): Build {
  const { branches: clipped, cut } = clip(cuttings, maxTokens);
  const { branches: chosen, leftOut } = fitted(clipped, traceBytesMax);
  const left = calls.map((call) => {
    const now = cut.get(call) ?? call;
    return leftOut.get(now) ?? now;
  });
  const large = tooLarge(chosen);
  const traces = chosen.map((branch) => traceOf(branch, !large.has(branch)));
  const versions = chosen.flat().flatMap(trainedVersions);
  const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
  versions.sort(compare);
  return {
    traces,
    stats: statsOf(calls, left, chosen, traces, large),
    drift: driftsOf(calls),
    policyVersionMin: versions[0] ?? 0n,
    policyVersionMax: versions.at(-1) ?? 0n,
  };
}

/** Branches whose routed experts are left out, as those before them fill what a trajectory may hold of them. */
function tooLarge(chosen: readonly Branch[]): Set<Branch> {
  let left = EXPERT_BYTES_MAX;
  return new Set(
    chosen.filter((branch) => {
      const bytes = expertBytesOf(branch);
      if (bytes > left) return true;
      left -= bytes;
      return false;
    }),
  );
}

/** The policy's own: that of a frozen model, trained on all the same, says nothing of how old the policy was. */
function trainedVersions(call: MaskedCall): bigint[] {
  if (call.trainedTokens === 0 || !call.trainable) return [];
  if (call.policyRuns.length === 0) return [call.policyVersion];
  return call.policyRuns
    .filter(({ start, length }) => call.mask.subarray(start, start + length).includes(1))
    .map(({ policyVersion }) => policyVersion);
}

/** `left` is what became of each call. */
function statsOf(
  calls: readonly MaskedCall[],
  left: readonly Masking[],
  chosen: readonly Branch[],
  traces: readonly Trace[],
  withoutExperts: ReadonlySet<Branch>,
): SessionStats {
  const counts = new Counts();
  for (const [i, call] of calls.entries()) counts.add(call, left[i] ?? call);
  const inTraces = chosen.flat().reduce((sum, call) => sum + call.sampledIds.length, 0);
  const slots = traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0) / 4;
  return create(SessionStatsSchema, {
    ...counts.told(),
    calls: calls.length,
    traces: traces.length,
    contextTokens: BigInt(slots - inTraces),
    expertsDropped: expertsDropped(calls, withoutExperts),
  });
}

/** Calls by the reason why their routed experts are not there. */
function expertsDropped(calls: readonly Call[], withoutExperts: ReadonlySet<Branch>): Record<string, number> {
  const faults = calls.map(({ expertsFault }) => expertsFault).filter((fault) => fault !== '');
  for (const branch of withoutExperts) faults.push(...branch.map(() => 'too_large'));
  const counted = Map.groupBy(faults.sort(), (fault) => fault);
  return Object.fromEntries([...counted].map(([fault, { length }]) => [fault, length]));
}

/** Sampled ids: as many as are trained and masked together. */
class Counts {
  readonly #masked = new Map<string, number>();
  #sampled = 0;
  #trained = 0;
  #usageMismatches = 0;

  /** `left` is the call after it was cut, or left out. */
  add({ sampledIds, noTokenIds, usageCompletionTokens }: Call, left: Masking): void {
    // What an engine without ids sampled is known by its own count alone.
    const sampled = noTokenIds ? (usageCompletionTokens ?? 0) : sampledIds.length;
    this.#sampled += sampled;
    if (noTokenIds) {
      this.#addMasked('no_token_ids', sampled);
      return;
    }
    this.#trained += left.trainedTokens;
    for (const [reason, count] of left.masked) this.#addMasked(reason, count);
    if ((usageCompletionTokens ?? sampledIds.length) !== sampledIds.length) this.#usageMismatches++;
  }

  #addMasked(reason: string, count: number): void {
    if (count > 0) this.#masked.set(reason, (this.#masked.get(reason) ?? 0) + count);
  }

  told(): Pick<SessionStats, 'trainedTokens' | 'sampledTokens' | 'maskedTokens' | 'usageMismatches'> {
    return {
      trainedTokens: BigInt(this.#trained),
      sampledTokens: BigInt(this.#sampled),
      // In one order, so that the same records give the same bytes.
      maskedTokens: Object.fromEntries(
        [...this.#masked].sort().map(([reason, count]) => [reason, BigInt(count)]),
      ),
      usageMismatches: this.#usageMismatches,
    };
  }
}
