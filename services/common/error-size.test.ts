// Errors that repeat what they were given.
import { expect } from 'chai';
import { shortened, shortFields } from './error-size.ts';

describe('the size of errors', () => {
  it('leaves what is short as it is', () => {
    for (const text of ['', 'there is no task a', 'é🦊\n']) expect(shortened(text)).to.equal(text);
    const fields = [{ field: 'a.b', description: 'must be set' }];
    expect(shortFields(fields)).to.deep.equal(fields);
  });

  it('cuts texts by what their trailer takes, and no letter in two', () => {
    for (const letter of ['x', ' ', 'é', '🦊', '\ud800']) {
      const cut = shortened(letter.repeat(100_000));
      expect(encodeURIComponent(cut).length).to.be.within(2_000, 3_072 + 9);
      expect(cut.endsWith('…')).to.equal(true);
    }
  });

  it('keeps the first of many faults and counts the others', () => {
    const many = Array.from({ length: 1_000 }, (_, i) => ({ field: `f[${i}]`, description: 'x'.repeat(90) }));
    const kept = shortFields(many);
    expect(kept[0]).to.deep.equal(many[0]);
    expect(kept.at(-1)?.description).to.equal(`${1_000 - kept.length + 1} more faults are not listed`);
    expect(Buffer.byteLength(JSON.stringify(kept))).to.be.below(4_096);
  });
});
