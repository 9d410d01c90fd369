import { expect } from 'chai';
import { readConfig } from './config.ts';

describe('the scheduler’s environment', () => {
  it('is as if a variable that is empty were not there, and holds a token without white space around it', () => {
    const names = [
      'POLAR_ROLLOUT_PORT',
      'POLAR_ROLLOUT_PUBLIC_URL',
      'POLAR_TOPOLOGY',
      'POLAR_NATS_URL',
      'POLAR_TOKEN',
    ];
    const empty = Object.fromEntries(names.map((name) => [name, '']));
    expect(readConfig(empty)).to.deep.equal(readConfig({}));
    expect(readConfig({ ...empty, POLAR_TOKEN: ' \n' }).token).to.equal(undefined);
    expect(readConfig({ ...empty, POLAR_TOKEN: 'secret\n' }).token).to.equal('secret');
  });
});
