import { expect } from 'chai';
import { resultReward } from './result-file.ts';

const of = (text: string | undefined, key = 'reward') => {
  const found = resultReward('/r.json', text === undefined ? undefined : Buffer.from(text), key);
  return typeof found === 'string' ? found : found.rewards;
};

describe('the reward of a result file', () => {
  it('is the number under its key', () => {
    expect(of('{"reward": -0.5, "passed": true}')).to.deep.equal({ reward: -0.5 });
    expect(of('{"reward": -0.5, "passed": true}', 'passed')).to.deep.equal({ passed: 1 });
    expect(of('{"__proto__": 2}', '__proto__')).to.have.own.property('__proto__', 2);
  });

  it('is none of anything else', () => {
    const wrong: [string | undefined, RegExp][] = [
      [undefined, /^wrote no \/r\.json$/],
      ['', /is empty/],
      ['{"reward": NaN}', /is no JSON/],
      ['[1]', /is no JSON object/],
      ['1', /is no JSON object/],
      ['{}', /no number as reward/],
      ['{"reward": "1"}', /no number as reward/],
      ['{"reward": 1e999}', /reward is not from/],
    ];
    for (const [text, why] of wrong) expect(of(text), text).to.match(why);
    expect(of('{}', 'constructor')).to.match(/no number as constructor/);
  });
});
