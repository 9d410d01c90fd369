import { expect } from 'chai';
import { ArrivingBody } from './arriving-body.ts';
import { Bytes } from './bytes.ts';

const PIECE_BYTES = 16_384;
/** No two places of it are alike. */
const text = (from: number, length: number): string =>
  Array.from({ length }, (_, i) =>
    String.fromCharCode(33 + (((from + i) * 7919 + ((from + i) >> 7)) % 90)),
  ).join('');

const LONG = text(0, 100_000);
/** As a known body is kept: each piece longer than those behind it. */
const known = (whole: string): Bytes =>
  new Bytes(
    [whole.slice(0, 60_001), whole.slice(60_001, 90_000), whole.slice(90_000)].map((one) => Buffer.from(one)),
  );

function arrived(came: string, ...earlier: Bytes[]): { whole: Bytes; keptBytes: number } {
  const body = new ArrivingBody(earlier);
  let keptBytes = 0;
  for (let at = 0; at < came.length; at += PIECE_BYTES) {
    const piece = Buffer.from(came.slice(at, at + PIECE_BYTES));
    if (body.add(piece)) keptBytes += piece.length;
    // It may be given back.
    else piece.fill(0);
  }
  return { whole: body.whole(), keptBytes };
}

describe('an arriving body', () => {
  it('is kept from the first piece on that is another', () => {
    for (const place of [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 60_000, 60_001, 89_999, 99_999]) {
      const came = `${LONG.slice(0, place)}é${LONG.slice(place + 1)}`;
      const latin = Buffer.from(came, 'latin1').toString('latin1');
      const { whole, keptBytes } = arrived(latin.replace('é', '~~'), known(LONG));
      expect(whole.text(), String(place)).to.equal(latin.replace('é', '~~'));
      expect(keptBytes).to.equal(whole.length - Math.floor(place / PIECE_BYTES) * PIECE_BYTES);
    }
  });

  it('is kept where it goes on behind a known one, and where it ends before its end', () => {
    const longer = LONG + text(7, 50_000);
    const grown = arrived(longer, known(LONG));
    expect(grown.whole.text()).to.equal(longer);
    expect(grown.keptBytes).to.be.below(50_000 + PIECE_BYTES + 1);
    const shorter = arrived(LONG.slice(0, 70_000), known(LONG));
    expect(shorter.whole.text()).to.equal(LONG.slice(0, 70_000));
    expect(shorter.keptBytes).to.equal(0);
  });

  it('begins as that known one which it is the same as for longest', () => {
    const [one, other] = [LONG, LONG.slice(0, 40_000) + text(3, 60_000)];
    for (const came of [one, other]) {
      const { whole, keptBytes } = arrived(`${came}!`, known(other), known(one));
      expect(whole.text()).to.equal(`${came}!`);
      expect(keptBytes).to.be.below(PIECE_BYTES);
    }
  });

  it('lends the memory of the known one, which is not its own to give back', () => {
    const before = known(LONG);
    const { whole } = arrived(`${LONG}!`, before);
    const { pieces, lent } = whole;
    expect(lent).to.be.greaterThan(0);
    const memory = new Set(before.pieces.map(({ buffer }) => buffer));
    for (const [i, { buffer }] of pieces.entries()) expect(memory.has(buffer)).to.equal(i < lent);
    expect(whole.shared(before)).to.equal(
      Math.floor(LONG.length / PIECE_BYTES) * PIECE_BYTES + (LONG.length % PIECE_BYTES),
    );
  });

  it('is kept whole beside short ones, and beside none', () => {
    const short = LONG.slice(0, 2_000);
    expect(arrived(short, new Bytes([Buffer.from(short)])).keptBytes).to.equal(2_000);
    expect(arrived(LONG).whole.text()).to.equal(LONG);
    expect(arrived('').whole.length).to.equal(0);
  });
});
