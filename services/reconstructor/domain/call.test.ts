import { expect } from 'chai';
import { type MaskSource, maskOf } from './call.ts';

const source = (changes: Partial<MaskSource> = {}): MaskSource => ({
  trainable: true,
  role: 'main',
  finishReason: 'stop',
  sampledIds: Int32Array.of(1, 2, 3),
  logprobs: Float32Array.of(-0.1, -0.2, 0),
  ...changes,
});

describe('maskOf', () => {
  it('trains every id that has a logprob of its own', () => {
    expect(maskOf(source())).to.deep.equal({
      mask: Uint8Array.of(1, 1, 1),
      trainedTokens: 3,
      maskedReason: undefined,
    });
  });

  for (const [what, hole] of Object.entries({
    NaN: Number.NaN,
    '-9999': -9999,
    positive: 0.5,
    '-inf': -1 / 0,
  })) {
    it(`masks a hole alone: ${what}`, () => {
      const { mask, maskedReason } = maskOf(source({ logprobs: Float32Array.of(-0.1, hole, -0.3) }));
      expect([...mask]).to.deep.equal([1, 0, 1]);
      expect(maskedReason).to.equal('no_logprob');
    });
  }

  it('masks all where logprobs are absent, or not as many as ids', () => {
    for (const logprobs of [undefined, Float32Array.of(-0.1), new Float32Array(4)]) {
      expect(maskOf(source({ logprobs }))).to.include({ trainedTokens: 0, maskedReason: 'no_logprob' });
    }
  });

  it('masks whole calls with their reason, a frozen model before all others', () => {
    const reason = (changes: Partial<MaskSource>) => maskOf(source(changes)).maskedReason;
    expect(reason({ trainable: false, role: 'side', finishReason: 'error' })).to.equal('frozen');
    expect(reason({ role: 'side', finishReason: 'error' })).to.equal('side');
    expect(reason({ finishReason: 'abort', logprobs: undefined })).to.equal('aborted');
    expect(reason({ finishReason: 'cancelled' })).to.equal('cancelled');
    expect(reason({ finishReason: 'error' })).to.equal('error');
    expect(reason({ role: 'sub', finishReason: 'length' })).to.equal(undefined);
  });

  it('gives no reason for a call without ids', () => {
    const empty = source({ sampledIds: new Int32Array(), logprobs: undefined, finishReason: 'error' });
    expect(maskOf(empty)).to.include({ trainedTokens: 0, maskedReason: undefined });
  });
});
