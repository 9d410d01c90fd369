import { expect } from 'chai';
import { idBytes, writeIds } from './id-digits.ts';

const MOST = 2 ** 31 - 1;

describe('ids in digits', () => {
  it('are those of JSON', () => {
    const powers = Array.from({ length: 10 }, (_, exponent) => 10 ** exponent);
    const ids = Int32Array.from([
      0,
      7,
      ...powers.flatMap((power) => [power - 1, power, power + 1]),
      MOST,
      -1,
      -MOST - 1,
    ]);
    const into = Buffer.alloc(idBytes(ids) + 2, '.');
    const end = writeIds(ids, into, 1);
    expect(into.toString('latin1')).to.equal(`.,${ids.join()}.`);
    expect(end).to.equal(into.length - 1);
  });

  it('may be none', () => {
    expect(idBytes(new Int32Array())).to.equal(0);
    expect(writeIds(new Int32Array(), Buffer.alloc(0), 0)).to.equal(0);
  });
});
