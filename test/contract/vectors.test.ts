// The shared reconstruction vectors: every one exactly, whatever the order of the calls and however records name their base.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DriftKind, type Trace } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { callLine, traceLine } from '../../services/reconstructor/domain/export.ts';
import { breaches, seeded } from '../support/laws.ts';
import { type RecordedCall, recordsOf } from '../support/records.ts';

const folder = join(import.meta.dirname, '../vectors');

interface ExpectedTrace {
  readonly prompt_ids: number[];
  readonly response_ids: number[];
  readonly loss_mask: number[];
  readonly logprobs: number[];
  readonly calls: string[];
}

interface Vector {
  readonly vector: number;
  readonly name: string;
  readonly calls: RecordedCall[];
  readonly expect: {
    readonly traces: ExpectedTrace[];
    readonly masked?: Record<string, number>;
    readonly drift?: { readonly call: string; readonly kind: string; readonly first_difference: number }[];
    readonly policy_version_min?: number;
    readonly policy_version_max?: number;
  };
}

const vectors = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .sort()
  .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Vector);

/** With logprobs as float32, which is what a record can hold. */
const expected = (trace: ExpectedTrace): ExpectedTrace => ({
  prompt_ids: trace.prompt_ids,
  response_ids: trace.response_ids,
  loss_mask: trace.loss_mask,
  logprobs: trace.logprobs.map(Math.fround),
  calls: trace.calls,
});

const actual = (trace: Trace): ExpectedTrace => ({
  prompt_ids: [...unpackIds(trace.promptIds)],
  response_ids: [...unpackIds(trace.responseIds)],
  loss_mask: [...trace.lossMask],
  logprobs: [...unpackFloats(trace.logprobs)],
  calls: trace.spans.map((span) => span.callId),
});

const shuffled = <T>(items: readonly T[], random: () => number): T[] =>
  items
    .map((item) => [random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);

describe('vectors', () => {
  it('are all there', () => {
    expect(vectors.length).to.equal(24);
  });

  for (const { vector, name, calls, expect: want } of vectors) {
    it(`${String(vector).padStart(3, '0')} ${name}`, () => {
      const random = seeded(vector);
      for (let round = 0; round < 10; round++) {
        const given = round === 0 ? expand(recordsOf(calls)) : expand(recordsOf(calls, random));
        const { traces, stats, drift, policyVersionMin, policyVersionMax } = build(
          'prefix_merging',
          shuffled(given, random),
        );
        expect(traces.map(actual)).to.have.deep.members(want.traces.map(expected));
        const masked = Object.entries(stats.maskedTokens).map(([reason, count]) => [reason, Number(count)]);
        expect(Object.fromEntries(masked)).to.deep.equal(want.masked ?? {});
        const drifts = drift.map((one) => ({
          call: one.callId,
          kind: DriftKind[one.kind].toLowerCase(),
          first_difference: one.firstDifference,
        }));
        expect(drifts).to.have.deep.members(want.drift ?? []);
        expect(Number(policyVersionMin)).to.equal(want.policy_version_min ?? 7);
        expect(Number(policyVersionMax)).to.equal(want.policy_version_max ?? 7);
        expect(stats.sampledTokens).to.equal(BigInt(calls.flatMap((call) => call.sampled_ids).length));
      }
    });
  }

  it('give traces of one call each with per_request, which hold all laws but fewness', () => {
    const sessions = vectors.map(({ calls }) => {
      const given = expand(recordsOf(calls));
      const { traces, stats } = build('per_request', given);
      expect(traces.map((trace) => trace.spans.length)).to.satisfy((spans: number[]) =>
        spans.every((n) => n === 1),
      );
      const masked = Object.values(stats.maskedTokens).reduce((sum, count) => sum + count, 0n);
      expect(stats.sampledTokens).to.equal(stats.trainedTokens + masked);
      return { calls: given.map(callLine), traces: traces.map(traceLine) };
    });
    for (const [i, found] of breaches(sessions).entries()) {
      const other = found.filter((breach) => !/traces where \d+ suffice/.test(breach));
      expect(other, vectors[i]?.name).to.deep.equal([]);
    }
  });
});
