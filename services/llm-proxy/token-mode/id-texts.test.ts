import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import { IdTexts } from './id-texts.ts';

const textOf = (texts: IdTexts, session: string, ids: Int32Array): string =>
  Buffer.concat([...texts.of(session, ids).text]).toString();

describe('ids as text', () => {
  it('is what JSON has, whatever came before', () => {
    const random = seeded(5);
    const texts = new IdTexts();
    let ids = new Int32Array();
    for (let turn = 0; turn < 300; turn++) {
      const keep = random() < 0.1 ? Math.floor(random() * ids.length) : ids.length;
      const fresh = Array.from({ length: Math.floor(random() * 4) }, () => Math.floor(random() * 150_000));
      ids = Int32Array.from([...ids.subarray(0, keep), ...fresh]);
      expect(`[${textOf(texts, 's', ids)}]`).to.equal(JSON.stringify([...ids]));
    }
  });

  it('keeps sessions apart', () => {
    const texts = new IdTexts();
    expect(textOf(texts, 'a', Int32Array.of(1, 2))).to.equal('1,2');
    expect(textOf(texts, 'b', Int32Array.of(1))).to.equal('1');
    expect(textOf(texts, 'a', Int32Array.of(1, 2, 3))).to.equal('1,2,3');
  });

  it('writes out nothing again', () => {
    const texts = new IdTexts();
    const [first] = texts.of('a', Int32Array.of(1, 2)).text;
    const second = texts.of('a', Int32Array.of(1, 2, 3)).text;
    expect(second[0]).to.equal(first);
    expect(second).to.have.length(2);
  });
});
