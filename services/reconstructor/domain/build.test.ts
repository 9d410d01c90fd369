// What the shared vectors do not say. They are in test/vectors, the laws on made-up sessions in test/contract.
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import {
  CompletionSchema,
  PolicySpanSchema,
  UsageSchema,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { DriftKind } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { type RecordedCall, recordsOf } from '../../../test/support/records.ts';
import { packIds } from '../../common/columns.ts';
import { CALLS_PER_ATTEMPT_MAX } from '../../common/limits.ts';
import { DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { type Build, build } from './build.ts';
import { expand } from './expand.ts';
import type { TokenNode } from './token-tree.ts';

let seq = 0;
const call = (
  call_id: string,
  prompt: readonly number[],
  sampled: readonly number[],
  changes: Partial<RecordedCall> = {},
): RecordedCall => ({
  call_id,
  start_seq: seq++,
  end_seq: seq++,
  prompt_ids: prompt,
  sampled_ids: sampled,
  logprobs: sampled.map(() => -0.5),
  finish_reason: 'stop',
  model: 'policy',
  policy_version: 7,
  messages: ['s', 'u'],
  reply: 'r',
  ...changes,
});
const merged = (...calls: RecordedCall[]): Build => build('prefix_merging', expand(recordsOf(calls)));
const callsOf = ({ traces }: Build): string[][] =>
  traces.map(({ spans }) => spans.map(({ callId }) => callId));

describe('build', () => {
  it('goes on behind a broken call with its retry', () => {
    const built = merged(
      call('c1', [1], [2]),
      call('broken', [1, 2, 3], [4], { finish_reason: 'error', reply: null }),
      call('retry', [1, 2, 3], [5]),
    );
    expect(callsOf(built)).to.deep.equal([['c1', 'retry']]);
    expect(built.stats.maskedTokens).to.deep.equal({ error: 1n });
  });

  it('keeps a masked call in the trace when a trained one extends it', () => {
    const built = merged(
      call('cut', [1], [2, 3], { finish_reason: 'cancelled', reply: null }),
      call('next', [1, 2, 3, 4], [5]),
    );
    expect(callsOf(built)).to.deep.equal([['cut', 'next']]);
    expect([...built.traces[0]!.lossMask]).to.deep.equal([0, 0, 0, 1]);
    expect(built.traces[0]!.spans.map(({ maskedReason }) => maskedReason)).to.deep.equal(['cancelled', '']);
  });

  it('does not take a call that got no tokens for the start of a conversation', () => {
    const failed = { finish_reason: 'error', reply: null, logprobs: null };
    const built = merged(
      call('refused', [], [], failed),
      call('down', [1, 2], [], failed),
      call('c1', [1, 2], [3]),
      call('c2', [8, 9], [3]),
    );
    expect(callsOf(built)).to.deep.equal([['c1'], ['c2']]);
    expect(built.drift).to.deep.equal([]);
  });

  it('goes on from the trained one of two calls with the same ids', () => {
    const built = merged(
      call('cut', [1], [2], { finish_reason: 'cancelled', reply: null }),
      call('whole', [1], [2]),
      call('next', [1, 2, 3], [4]),
    );
    expect(callsOf(built)).to.deep.equal([['whole', 'next']]);
  });

  it('counts from the policy versions of trained calls only', () => {
    const built = merged(
      call('side', [9], [1], { role: 'side', policy_version: 1 }),
      call('c1', [1], [2], { policy_version: 5 }),
      call('c2', [1, 2, 3], [4], { policy_version: 6 }),
    );
    expect(built.policyVersionMin).to.equal(5n);
    expect(built.policyVersionMax).to.equal(6n);
    expect(merged(call('none', [9], [1], { role: 'side' })).policyVersionMin).to.equal(0n);
    const cut = call('cut', [1], [2], { finish_reason: 'cancelled', reply: null, policy_version: 1 });
    const others = [10, 9].map((policy_version, i) =>
      call(`c${i}`, [1, 2, ...(i === 0 ? [] : [3, 4]), 3], [4], { policy_version }),
    );
    const frozen = call('frozen', [1, 2, 3, 4, 3, 4, 5], [6], { trainable: false, policy_version: 99 });
    const all = expand(recordsOf([cut, ...others, frozen]));
    const whole = build('prefix_merging', all, { ...DEFAULT_POLICIES, frozen_models: 'train' });
    expect(callsOf(whole)).to.deep.equal([['cut', 'c0', 'c1', 'frozen']]);
    expect(whole.stats.trainedTokens).to.equal(3n);
    expect([whole.policyVersionMin, whole.policyVersionMax]).to.deep.equal([9n, 10n]);
  });

  it('tells where in a trace each version of the weights sampled, and counts versions of trained ids only', () => {
    const [first, second] = recordsOf([
      call('c1', [1], [2, 3, 4], { logprobs: [-1, -1, null], policy_version: 8 }),
      call('c2', [1, 2, 3, 4, 5], [6, 7], { policy_version: 8 }),
    ]);
    first!.policySpans = [
      create(PolicySpanSchema, { policyVersion: 6n, start: 0, end: 2 }),
      create(PolicySpanSchema, { policyVersion: 9n, start: 2, end: 3 }),
    ];
    second!.policySpans = [
      create(PolicySpanSchema, { policyVersion: 7n, start: 0, end: 1 }),
      create(PolicySpanSchema, { policyVersion: 8n, start: 1, end: 2 }),
    ];
    const runsOf = ({ traces }: Build): unknown =>
      traces[0]?.spans.map(({ policyRuns }) =>
        policyRuns.map(({ policyVersion, start, length }) => [Number(policyVersion), start, length]),
      );
    const calls = expand([first!, second!]);
    const whole = build('prefix_merging', calls);
    expect(runsOf(whole)).to.deep.equal([
      [
        [6, 0, 2],
        [9, 2, 1],
      ],
      [
        [7, 4, 1],
        [8, 5, 1],
      ],
    ]);
    expect([whole.policyVersionMin, whole.policyVersionMax]).to.deep.equal([6n, 8n]);
    const clipped = build('prefix_merging', calls, { ...DEFAULT_POLICIES, max_trace_tokens: 6 });
    expect(runsOf(clipped)).to.deep.equal([
      [
        [6, 0, 2],
        [9, 2, 1],
      ],
      [[7, 4, 1]],
    ]);
    expect(clipped.policyVersionMax).to.equal(7n);
  });

  it('takes the oldest version for all ids where an engine’s runs are not those of the sampled ids', () => {
    for (const ends of [[2], [1, 1, 3], [1, 4]]) {
      const [record] = recordsOf([call('c1', [1], [2, 3, 4], { policy_version: 9 })]);
      record!.policySpans = ends.map((end, i) =>
        create(PolicySpanSchema, { policyVersion: BigInt(5 + i), start: ends[i - 1] ?? 0, end }),
      );
      const { traces, policyVersionMin, policyVersionMax } = build('prefix_merging', expand([record!]));
      expect(traces[0]!.spans[0]).to.deep.include({ policyVersion: 5n, policyRuns: [] });
      expect([policyVersionMin, policyVersionMax]).to.deep.equal([5n, 5n]);
    }
  });

  it('counts context once for each trace that it is in', () => {
    const { stats } = merged(call('c1', [1, 2], [3]), call('c2', [1, 2, 3, 4, 5], [6]), call('c3', [7], [8]));
    expect(stats).to.include({
      calls: 3,
      traces: 2,
      contextTokens: 5n,
      trainedTokens: 3n,
      sampledTokens: 3n,
    });
  });

  it('finds drift behind a reply that came before after fewer messages, and after as many', () => {
    const built = merged(
      call('c1', [1], [2], { messages: ['s', 'u'], reply: 'ok' }),
      call('c2', [1, 2, 3], [4], { messages: ['s', 'u', 'ok', 'u2'], reply: 'ok' }),
      call('c3', [1, 2, 5], [6], { messages: ['s', 'u', 'ok', 'u3'], reply: 'ok' }),
      call('c4', [1, 2, 3, 9], [7], { messages: ['s', 'u', 'ok', 'u2', 'ok', 'u4'] }),
    );
    expect(
      built.drift.map(({ callId, kind, firstDifference }) => [callId, kind, firstDifference]),
    ).to.deep.equal([['c4', DriftKind.RETOKENISED, 3]]);
  });
  it('finds drift behind a system message that changes, but not in another conversation with an equal reply', () => {
    const built = merged(
      call('c1', [1, 2], [3], { messages: ['s at noon', 'u'], reply: 'ok' }),
      call('c2', [9, 2, 3, 4], [5], { messages: ['s at one', 'u', 'ok', 'u2'] }),
      call('c3', [7, 7, 3, 7], [5], { messages: ['z', 'w', 'ok', 'v'] }),
    );
    expect(
      built.drift.map(({ callId, kind, firstDifference }) => [callId, kind, firstDifference]),
    ).to.deep.equal([['c2', DriftKind.REWRITTEN, 0]]);
  });

  it('counts what an engine without ids sampled, and leaves it out of traces', () => {
    const [known, unknown] = recordsOf([call('c1', [1], [2, 3]), call('c2', [], [])]);
    Object.assign(unknown!, { noTokenIds: true, usage: create(UsageSchema, { completionTokens: 40 }) });
    const { traces, stats } = build('prefix_merging', expand([known!, unknown!]));
    expect(traces.map(({ spans }) => spans.map(({ callId }) => callId))).to.deep.equal([['c1']]);
    expect(stats).to.deep.include({
      trainedTokens: 2n,
      sampledTokens: 42n,
      maskedTokens: { no_token_ids: 40n },
      usageMismatches: 0,
    });
  });

  it('holds what is new in each of the most calls that an attempt may have, and builds them', () => {
    const column = (start: number): Uint8Array => packIds(Array.from({ length: 20 }, (_, i) => start + i));
    const records = Array.from({ length: CALLS_PER_ATTEMPT_MAX }, (_, index) =>
      create(CompletionSchema, {
        callId: `c${index}`,
        index,
        startSeq: BigInt(index),
        baseIndex: index - 1,
        baseLength: index * 40,
        promptSuffixIds: column(index),
        promptLength: index * 40 + 20,
        sampledIds: column(index + 7),
        logprobs: new Uint8Array(80),
        trainable: true,
      }),
    );
    const calls = expand(records);
    // The prompts together would be eight gigabytes.
    const counted = new Set<TokenNode>();
    let held = 0;
    for (const { end } of calls) {
      for (let at = end; at.parent !== undefined && !counted.has(at); at = at.parent) {
        counted.add(at);
        held += at.depth - at.parent.depth;
      }
    }
    expect(held).to.equal(CALLS_PER_ATTEMPT_MAX * 40);
    const { traces, stats } = build('prefix_merging', calls);
    expect(traces.length).to.equal(1);
    expect(stats.trainedTokens).to.equal(BigInt(CALLS_PER_ATTEMPT_MAX * 20));
  });
});
