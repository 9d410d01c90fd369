import { expect } from 'chai';
import { unpackFloats } from '../../common/columns.ts';
import { idsOf } from './json.ts';
import { logprobOf } from './logprob.ts';
import {
  addLogprobs,
  addSampled,
  logprobColumn,
  noTokens,
  policyVersionOf,
  sampledOf,
  weightSpansOf,
  weightVersionOf,
} from './tokens.ts';

describe('tokens', () => {
  it('take whole int32 numbers for ids, and nothing else', () => {
    expect([...(idsOf([0, 151_643, -1]) ?? [])]).to.deep.equal([0, 151_643, -1]);
    for (const wrong of [null, undefined, '1', [1.5], ['1'], [null], [2 ** 31], {}]) {
      expect(idsOf(wrong)).to.equal(undefined);
    }
  });

  it('take what is no logprob for a hole', () => {
    expect([-0.5, 0].map(logprobOf)).to.deep.equal([-0.5, 0]);
    for (const hole of [null, undefined, -9999, 0.1, '-1']) expect(logprobOf(hole)).to.be.NaN;
  });

  it('have a logprob column only where there is one for each id', () => {
    const tokens = sampledOf(noTokens(), 0);
    addSampled(tokens, Int32Array.of(5, 6));
    addLogprobs(tokens, { logprobs: { content: [{ logprob: -1 }] } });
    expect(logprobColumn(tokens)).to.equal(undefined);
    addLogprobs(tokens, { logprobs: { content: [{ logprob: -9999 }] } });
    addLogprobs(tokens, { logprobs: null });
    const [first, second] = unpackFloats(logprobColumn(tokens) as Uint8Array);
    expect(first).to.equal(-1);
    expect(second).to.be.NaN;
  });

  it('are of the weights with which the first one was sampled', () => {
    expect(
      weightVersionOf({ weight_version: '9', weight_versions: [{ version: '8', start: 0, end: 3 }] }),
    ).to.equal('8');
    expect(weightVersionOf({ weight_version: 'default', weight_versions: [] })).to.equal('default');
    expect(weightVersionOf(undefined)).to.equal(undefined);
    const spans = [
      { version: '8', start: 0, end: 3 },
      { version: '9', start: 3, end: 5 },
    ];
    expect(weightSpansOf({ weight_versions: spans })).to.deep.equal([
      { weightVersion: '8', start: 0, end: 3 },
      { weightVersion: '9', start: 3, end: 5 },
    ]);
    expect(weightSpansOf({ weight_versions: spans.slice(1) })).to.deep.equal([]);
    expect(['12', 'default', '', '1e3'].map(policyVersionOf)).to.deep.equal([12n, 0n, 0n, 0n]);
    const [last, above] = ['9007199254740991', '9007199254740992'].map(policyVersionOf);
    expect([last, above]).to.deep.equal([2n ** 53n - 1n, 0n]);
  });
});
