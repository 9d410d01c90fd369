import { expect } from 'chai';
import { heldBytes } from '../../../test/support/held-bytes.ts';
import { HeadTail } from './head-tail.ts';

const kept = (edgeBytes: number, ...parts: string[]): string => {
  const output = new HeadTail(edgeBytes);
  for (const part of parts) output.push(Buffer.from(part));
  return Buffer.from(output.bytes()).toString();
};

describe('head and tail of an output', () => {
  it('keeps all of a short one', () => {
    expect(kept(4)).to.equal('');
    expect(kept(4, 'abc')).to.equal('abc');
    expect(kept(4, 'abcdefgh')).to.equal('abcdefgh');
    expect(kept(4, 'a', 'bcde', 'fgh')).to.equal('abcdefgh');
  });

  it('says how much of the middle is missing', () => {
    expect(kept(4, 'abcdXefgh')).to.equal('abcd\n[1 bytes left out]\nefgh');
    expect(kept(2, 'ab', 'c', 'd', 'e', 'f', 'g')).to.equal('ab\n[3 bytes left out]\nfg');
  });

  it('does not depend on how the output is cut', () => {
    const text = Array.from({ length: 997 }, (_, i) => String.fromCharCode(97 + (i % 26))).join('');
    const whole = kept(100, text);
    for (const size of [1, 3, 99, 100, 101, 200, 301, 500]) {
      const parts = text.match(new RegExp(`.{1,${size}}`, 'g')) as string[];
      expect(kept(100, ...parts)).to.equal(whole);
    }
  });

  it('keeps copies, as a transport may use its buffers again', () => {
    const output = new HeadTail(4);
    const buffer = Buffer.from('abcdef');
    output.push(buffer);
    buffer.fill('x');
    expect(Buffer.from(output.bytes()).toString()).to.equal('abcdef');
  });

  it('tells of what was left out before', () => {
    const output = new HeadTail(2);
    output.push(Buffer.from('abyz'));
    output.leftOut(22);
    expect([Buffer.from(output.bytes()).toString(), output.sizeBytes]).to.deep.equal([
      'ab\n[22 bytes left out]\nyz',
      26,
    ]);
  });

  it('holds little, however small the pieces are', () => {
    const output = new HeadTail(1 << 18);
    const piece = Buffer.from('x');
    const before = heldBytes();
    for (let i = 0; i < 3 << 18; i++) output.push(piece);
    expect(output.sizeBytes).to.equal(3 << 18);
    expect(heldBytes() - before).to.be.below(2 << 20);
  });
});
