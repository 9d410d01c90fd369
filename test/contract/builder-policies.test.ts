// Policies of a builder: what each masks, by its reason, and the laws under any mixture of them.
import { expect } from 'chai';
import type { Trace } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackIds } from '../../services/common/columns.ts';
import {
  type BuilderPolicies,
  builderConfigs,
  DEFAULT_POLICIES,
} from '../../services/common/specs/strategies.ts';
import { type Build, build } from '../../services/reconstructor/domain/build.ts';
import { expand } from '../../services/reconstructor/domain/expand.ts';
import { seeded } from '../support/laws.ts';
import { sampledCall as call, type RecordedCall, recordsOf } from '../support/records.ts';
import { madeUpSession } from '../support/sessions.ts';
import { breachesOf } from '../support/trace-laws.ts';

const built = (config: object, calls: readonly RecordedCall[]): Build => {
  const policies = builderConfigs.prefix_merging.parse(config);
  const made = build('prefix_merging', expand(recordsOf(calls)), policies);
  expect(breachesOf(calls, made, policies.max_trace_tokens)).to.deep.equal([]);
  return made;
};
const maskedOf = ({ stats }: Build): object =>
  Object.fromEntries(Object.entries(stats.maskedTokens).map(([reason, count]) => [reason, Number(count)]));
const callsOf = ({ traces }: Build): string[][] =>
  traces.map(({ spans }) => spans.map(({ callId }) => callId));

describe('builder policies', () => {
  it('have defaults under which a builder does what it does without any', () => {
    expect(builderConfigs.per_request.parse({})).to.deep.equal(DEFAULT_POLICIES);
  });

  it('tell retries that nobody went on with from the reply that counts', () => {
    const calls = [
      call('a', [1], [2]),
      call('b', [1], [3]),
      call('c', [1], [4]),
      call('next', [1, 3, 9], [5]),
      call('other', [7], [8]),
      call('again', [7], [6]),
    ];
    expect(maskedOf(built({}, calls))).to.deep.equal({});
    const made = built({ retries: 'mask' }, calls);
    expect(maskedOf(made)).to.deep.equal({ retried: 3 });
    expect(callsOf(made)).to.deep.equal([['b', 'next'], ['again']]);
  });

  it('mask turns that the conversation went back behind, but not those of sub-agents', () => {
    const calls = [
      call('c1', [1], [2]),
      call('left', [1, 2, 3], [4]),
      call('left too', [1, 2, 3, 4, 5], [6, 7]),
      call('fork', [1, 2, 8], [9], { role: 'sub' }),
      call('back', [1, 2, 9], [4]),
      call('elsewhere', [5], [4]),
    ];
    const made = built({ abandoned: 'mask' }, calls);
    expect(maskedOf(made)).to.deep.equal({ abandoned: 3 });
    expect(callsOf(made)).to.deep.equal([['c1', 'fork'], ['back'], ['elsewhere']]);
  });

  it('go by the last call that is trained, not by one that broke off at the end', () => {
    const cut = { finish_reason: 'cancelled', reply: null };
    const calls = [call('c1', [1], [2]), call('c2', [1, 2, 3], [4]), call('cut', [1, 2, 3], [5], cut)];
    for (const config of [{ retries: 'mask' }, { abandoned: 'mask' }]) {
      const made = built(config, calls);
      expect(callsOf(made)).to.deep.equal([['c1', 'c2']]);
      expect(maskedOf(made)).to.deep.equal({ cancelled: 1 });
    }
  });

  it('cut traces that are too long at their end, and count what is cut', () => {
    const calls = [
      call('c1', [1, 2], [3, 4]),
      call('c2', [1, 2, 3, 4, 5], [6, 7, 8]),
      call('c3', [1, 2, 3, 4, 5, 6, 7, 8, 9], [10]),
      call('long', [20, 21, 22, 23, 24, 25, 26], [27]),
    ];
    const made = built({ max_trace_tokens: 7 }, calls);
    expect(maskedOf(made)).to.deep.equal({ clipped: 3 });
    expect(callsOf(made)).to.deep.equal([['c1', 'c2']]);
    const [trace] = made.traces;
    expect([...unpackIds(trace!.responseIds)]).to.deep.equal([3, 4, 5, 6, 7]);
    expect(trace!.spans[1]).to.include({ start: 3, length: 2, maskedReason: 'clipped' });
    // What precedes a call that is cut whole is of no use either.
    expect(callsOf(built({ max_trace_tokens: 5 }, calls))).to.deep.equal([['c1']]);
    expect(built({ max_trace_tokens: 5 }, calls).traces[0]!.responseIds.length).to.equal(8);
    expect(maskedOf(built({ max_trace_tokens: 1 }, calls))).to.deep.equal({ clipped: 7 });
  });

  it('keep the laws and the counts under any mixture, with both builders', () => {
    const reasons = new Set<string>();
    for (let seed = 0; seed < 400; seed++) {
      const random = seeded(seed);
      const session = madeUpSession(random, 1 + Math.floor(random() * 24), seed % 2 === 0 ? 2 : 50);
      const policies = madeUpPolicies(random);
      for (const builder of ['prefix_merging', 'per_request'] as const) {
        const made = build(builder, expand(recordsOf(session, random)), policies);
        const bad = breachesOf(session, made, policies.max_trace_tokens);
        expect(bad, `session ${seed}, ${builder}, ${JSON.stringify(policies)}`).to.deep.equal([]);
        for (const reason of Object.keys(made.stats.maskedTokens)) reasons.add(reason);
      }
    }
    const wanted = ['frozen', 'side', 'cancelled', 'error', 'aborted', 'no_logprob', 'truncated'];
    expect([...reasons]).to.include.members([...wanted, 'retried', 'abandoned', 'reasoning', 'clipped']);
  });

  it('find what an independent check is for: ids, masks and counts that were changed', () => {
    const calls = [call('c1', [1], [2, 3]), call('c2', [1, 2, 3, 4], [5])];
    const made = built({}, calls);
    const trace = made.traces[0]!;
    const changes: Partial<Trace>[] = [
      { responseIds: Uint8Array.from(trace.responseIds).fill(9, 0, 1) },
      { lossMask: Uint8Array.of(1, 1, 1, 1) },
      { lossMask: Uint8Array.of(0, 1, 0, 1) },
      { logprobs: new Uint8Array(16) },
      { spans: trace.spans.slice(1) },
    ];
    for (const change of changes) {
      expect(breachesOf(calls, { ...made, traces: [{ ...trace, ...change }] })).to.not.deep.equal([]);
    }
    expect(breachesOf(calls, { ...made, traces: [trace, trace] })).to.not.deep.equal([]);
    expect(breachesOf(calls, { ...made, traces: [] })).to.not.deep.equal([]);
  });
});

function madeUpPolicies(random: () => number): BuilderPolicies {
  const maskOr = (): 'mask' | 'train' => (random() < 0.5 ? 'mask' : 'train');
  return builderConfigs.prefix_merging.parse({
    side_calls: maskOr(),
    frozen_models: maskOr(),
    interrupted: maskOr(),
    missing_logprobs: random() < 0.5 ? 'mask_ids' : 'mask_call',
    truncated: maskOr(),
    invalid_tool_calls: maskOr(),
    retries: maskOr(),
    abandoned: maskOr(),
    ...(random() < 0.3 && { reasoning_end_ids: [1 + Math.floor(random() * 3)] }),
    ...(random() < 0.5 && { max_trace_tokens: 1 + Math.floor(random() * 40) }),
  });
}
