import { expect } from 'chai';
import { Bytes } from './bytes.ts';

const of = (...texts: readonly string[]): Bytes => new Bytes(texts.map((text) => Buffer.from(text)));
const cut = (text: string): Bytes => of(...text.split('|'));

describe('bytes in pieces', () => {
  it('give any part of them, in place or as a copy', () => {
    const bytes = cut('ab||cde|f');
    const whole = 'abcdef';
    for (let from = 0; from <= 6; from++) {
      for (let to = from; to <= 6; to++) {
        expect(Buffer.concat(bytes.slice(from, to)).toString()).to.equal(whole.slice(from, to));
        expect(bytes.copy(from, to).toString()).to.equal(whole.slice(from, to));
        expect(bytes.text(from, to)).to.equal(whole.slice(from, to));
      }
    }
    expect(bytes.slice(2, 4)[0]?.buffer).to.equal(bytes.pieces[2]?.buffer);
    expect(new Bytes([Buffer.from([0xc3]), Buffer.from([0xa9])]).text()).to.equal('é');
  });

  it('tell how far two are the same, however they are cut', () => {
    for (const [a, b, length] of [
      ['', 'a', 0],
      ['abc', 'abc', 3],
      ['a|bc', 'ab|c', 3],
      ['ab|cd', 'a|bxd', 2],
      ['xbc', 'abc', 0],
      ['||ab', 'a||b|c', 2],
      ['abcdefgh|ij', 'abcdexgh|ij', 5],
    ] as const) {
      expect(cut(a).shared(cut(b)), `${a} ${b}`).to.equal(length);
      expect(cut(b).shared(cut(a)), `${b} ${a}`).to.equal(length);
      expect(cut(a).equals(cut(b))).to.equal(a.replaceAll('|', '') === b.replaceAll('|', ''));
    }
  });

  it('grow by tails without being copied each time, and stay few', () => {
    let bytes = new Bytes([Buffer.alloc(100_000, 'a')]);
    let text = bytes.text();
    let copied = 0;
    for (let i = 0; i < 300; i++) {
      const tail = Buffer.from(String(i).repeat(50));
      const before = new Set(bytes.pieces.map(({ buffer }) => buffer));
      // The last bytes of each are replaced, as what stands behind a conversation is.
      text = text.slice(0, -3) + tail.toString();
      bytes = bytes.before(bytes.length - 3, tail);
      for (const { buffer, length } of bytes.pieces) copied += before.has(buffer) ? 0 : length;
    }
    expect(bytes.text()).to.equal(text);
    expect(bytes.pieces.length).to.be.below(12);
    expect(copied).to.be.below(5 * text.length);
  });

  it('let go of memory of which they hold little', () => {
    const bytes = new Bytes([Buffer.alloc(1_000_000)]).before(10, cut('x').copy());
    expect(bytes.pieces.every(({ buffer }) => buffer.byteLength < 100)).to.equal(true);
  });
});
