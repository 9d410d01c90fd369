import { expect } from 'chai';
import { harborReward } from './harbor-reward.ts';
import { REWARD_FILE_BYTES_MAX } from './written-reward.ts';

const of = (json: string | undefined, text?: string) => {
  const bytes = (given: string | undefined) => (given === undefined ? undefined : Buffer.from(given));
  const found = harborReward(bytes(json), bytes(text));
  return typeof found === 'string' ? found : found.reward;
};

describe('the reward of a Harbor verifier', () => {
  it('is the number of reward.txt, as Python prints it', () => {
    const texts: [string, number][] = [
      ...([
        ['1', 1],
        ['0.25\n', 0.25],
        [' -3e-2 ', -0.03],
        ['+1.', 1],
        ['.5', 0.5],
        ['0', 0],
      ] as [string, number][]),
    ];
    for (const [text, reward] of texts) expect(of(undefined, text), text).to.equal(reward);
  });

  it('is that of reward.json where there is one: a number, or the mean of its numbers', () => {
    expect(of('0.5', '1')).to.equal(0.5);
    expect(of('{"reward": 0.6667}', '1')).to.equal(0.6667);
    expect(of('{"a": true, "b": false, "c": 2}')).to.equal(1);
    expect(harborReward(Buffer.from('{"a": true, "b": 0}'), undefined)).to.deep.equal({
      reward: 0.5,
      rewards: { a: 1, b: 0 },
    });
  });

  it('is none where nothing that is one was written, be it right in the other file', () => {
    const wrong: [string | undefined, string | undefined, RegExp][] = [
      [undefined, undefined, /neither reward.json nor reward.txt/],
      [undefined, ' \n', /reward.txt that is empty/],
      [undefined, 'passed', /reward.txt that holds no number/],
      [undefined, 'nan', /no number/],
      [undefined, 'inf', /no number/],
      [undefined, '0x10', /no number/],
      [undefined, '1 0', /no number/],
      [undefined, '1e999', /reward is not from/],
      [undefined, '1000001', /reward is not from/],
      [undefined, '1'.repeat(REWARD_FILE_BYTES_MAX + 1), /above 65536/],
      ['', '1', /reward.json that is empty/],
      ['{"reward": NaN}', '1', /reward.json that is no JSON/],
      ['{"reward": 1', '1', /no JSON/],
      ['{}', '1', /names no reward/],
      ['[1]', '1', /neither a number nor an object/],
      ['null', '1', /neither a number nor an object/],
      ['{"a": 1, "b": "1"}', '1', /no number as b/],
      ['{"a": 1, "b": null}', '1', /no number as b/],
      ['{"a": 1, "b": {"c": 1}}', '1', /no number as b/],
      ['{"a": 1, "b": -1e999}', '1', /b is not from/],
    ];
    for (const [json, text, why] of wrong) expect(of(json, text), `${json} ${text}`).to.match(why);
  });

  it('is found at once, whatever was written', () => {
    const { user } = process.cpuUsage();
    for (const text of ['1', '1.', '.1', '1e', '-', ' ']) {
      const written = text.repeat(REWARD_FILE_BYTES_MAX).slice(0, REWARD_FILE_BYTES_MAX - 1);
      expect(of(undefined, `${written}x`), text).to.match(/no number/);
    }
    expect((process.cpuUsage().user - user) / 1000).to.be.lessThan(1_000);
  });
});
