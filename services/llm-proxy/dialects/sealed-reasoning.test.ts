import { expect } from 'chai';
import { openReasoning, sealReasoning } from './sealed-reasoning.ts';

describe('sealed reasoning', () => {
  it('is valid base64 that gives the very text back', () => {
    for (const text of ['', 'so', ' naïve\n\n日本語 👩‍👩‍👧\u2028', 'x'.repeat(100_000)]) {
      const seal = sealReasoning(text);
      expect(Buffer.from(seal, 'base64').toString('base64')).to.equal(seal);
      expect(openReasoning(seal)).to.equal(text);
    }
  });

  it('is believed only as it was sealed', () => {
    const seal = sealReasoning('the text inside');
    for (const other of [
      '',
      'skip_thought_signature_validator',
      'EpQBCkYIBxgC',
      seal.slice(0, -4),
      `${seal}AAAA`,
    ])
      expect(openReasoning(other), other).to.equal(undefined);
  });
});
