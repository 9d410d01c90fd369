import { expect } from 'chai';
import { DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { type MaskSource, maskOf } from './masking.ts';

const source = (changes: Partial<MaskSource> = {}): MaskSource => ({
  trainable: true,
  role: 'main',
  finishReason: 'stop',
  sampledIds: Int32Array.of(1, 2, 3),
  logprobs: Float32Array.of(-0.1, -0.2, 0),
  invalidToolCall: false,
  ...changes,
});

describe('maskOf', () => {
  it('trains every id that has a logprob of its own', () => {
    expect(maskOf(source())).to.deep.equal({
      mask: Uint8Array.of(1, 1, 1),
      trainedTokens: 3,
      masked: new Map(),
    });
  });

  for (const [what, hole] of Object.entries({
    NaN: Number.NaN,
    '-9999': -9999,
    positive: 0.5,
    '-inf': -1 / 0,
  })) {
    it(`masks a hole alone: ${what}`, () => {
      const { mask, masked } = maskOf(source({ logprobs: Float32Array.of(-0.1, hole, -0.3) }));
      expect([...mask]).to.deep.equal([1, 0, 1]);
      expect([...masked]).to.deep.equal([['no_logprob', 1]]);
    });
  }

  it('masks all where logprobs are absent, or not as many as ids', () => {
    for (const logprobs of [undefined, Float32Array.of(-0.1), new Float32Array(4)]) {
      const { trainedTokens, masked } = maskOf(source({ logprobs }));
      expect([trainedTokens, ...masked]).to.deep.equal([0, ['no_logprob', 3]]);
    }
  });

  it('masks whole calls with their reason, a frozen model before all others', () => {
    const reason = (changes: Partial<MaskSource>) => [...maskOf(source(changes)).masked.keys()][0];
    expect(reason({ trainable: false, role: 'side', finishReason: 'error' })).to.equal('frozen');
    expect(reason({ role: 'side', finishReason: 'error' })).to.equal('side');
    expect(reason({ finishReason: 'abort', logprobs: undefined })).to.equal('aborted');
    expect(reason({ finishReason: 'cancelled' })).to.equal('cancelled');
    expect(reason({ finishReason: 'error' })).to.equal('error');
    expect(reason({ role: 'sub', finishReason: 'length' })).to.equal(undefined);
  });

  it('gives no reason for a call without ids', () => {
    const empty = source({ sampledIds: new Int32Array(), logprobs: undefined, finishReason: 'error' });
    expect(maskOf(empty)).to.deep.include({ trainedTokens: 0, masked: new Map() });
  });

  const reasonsBy = (policies: object, changes: Partial<MaskSource>): object =>
    Object.fromEntries(maskOf(source(changes), { ...DEFAULT_POLICIES, ...policies }).masked);

  it('trains what a policy lets it, and never without a logprob', () => {
    const all: Partial<MaskSource> = { trainable: false, role: 'side', finishReason: 'cancelled' };
    expect(reasonsBy({ frozen_models: 'train' }, all)).to.deep.equal({ side: 3 });
    expect(reasonsBy({ frozen_models: 'train', side_calls: 'train' }, all)).to.deep.equal({ cancelled: 3 });
    const everything = { frozen_models: 'train', side_calls: 'train', interrupted: 'train' };
    expect(reasonsBy(everything, all)).to.deep.equal({});
    expect(reasonsBy(everything, { ...all, logprobs: undefined })).to.deep.equal({ no_logprob: 3 });
  });

  it('masks more where a policy says so, each id for its first reason', () => {
    const hole = Float32Array.of(-0.1, Number.NaN, -0.3);
    expect(reasonsBy({ missing_logprobs: 'mask_call' }, { logprobs: hole })).to.deep.equal({ no_logprob: 3 });
    expect(reasonsBy({ truncated: 'mask' }, { finishReason: 'length', logprobs: hole })).to.deep.equal({
      no_logprob: 1,
      truncated: 2,
    });
    expect(reasonsBy({ truncated: 'mask' }, { finishReason: 'stop' })).to.deep.equal({});
    expect(reasonsBy({ invalid_tool_calls: 'mask' }, { invalidToolCall: true })).to.deep.equal({
      invalid_tool_call: 3,
    });
  });

  it('masks reasoning up to the ids that end it, and nothing where they are not', () => {
    const masked = (ids: number[]): number[] => [
      ...maskOf(source(), { ...DEFAULT_POLICIES, reasoning_end_ids: ids }).mask,
    ];
    expect(masked([2])).to.deep.equal([0, 0, 1]);
    expect(masked([1, 2])).to.deep.equal([0, 0, 1]);
    expect(masked([2, 2])).to.deep.equal([1, 1, 1]);
    expect(masked([9])).to.deep.equal([1, 1, 1]);
  });
});
