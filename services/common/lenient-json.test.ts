import { expect } from 'chai';
import { parseLenient } from './lenient-json.ts';

describe('lenient JSON', () => {
  it('is read as it is', () => {
    expect(parseLenient('{"a":[1,"NaN"]}')).to.deep.equal({ a: [1, 'NaN'] });
    expect(parseLenient('null')).to.equal(null);
  });

  it('may hold numbers that are none, but texts stay', () => {
    const text = '{"a": NaN, "b": [-Infinity, Infinity, -1.5], "c": "is NaN \\" Infinity", "NaN": 1}';
    expect(parseLenient(text)).to.deep.equal({
      a: null,
      b: [null, null, -1.5],
      c: 'is NaN " Infinity',
      NaN: 1,
    });
  });

  it('may have a text of many characters, and of many quotes', () => {
    const text = `${'a'.repeat(20_000_000)}${'"\\'.repeat(1_000_000)}NaN`;
    expect(parseLenient(`[${JSON.stringify(text)}, NaN]`)).to.satisfy(
      (read: unknown[]) => read[0] === text && read[1] === null,
    );
    expect(parseLenient(`["NaN${'\\"'.repeat(1_000_000)}`)).to.equal(undefined);
  });

  it('is told from what is none', () => {
    for (const text of ['<html>NaN</html>', '', '{"a":', '{"a": NaNs}'])
      expect(parseLenient(text)).to.equal(undefined);
  });
});
