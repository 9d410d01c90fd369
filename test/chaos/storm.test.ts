// The quick form of `npm run test:chaos`: everything is struck once while three nodes run sessions.
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { isRight, tableOf } from './account.ts';
import { storm } from './storm.ts';

const seed = Number(process.env['POLAR_CHAOS_SEED'] ?? randomInt(1_000_000));

describe('a storm over three nodes', function () {
  this.timeout(240_000);
  it(`loses nothing, doubles nothing and leaves nothing (POLAR_CHAOS_SEED=${seed})`, async () => {
    const said: string[] = [];
    const entries = await storm(
      {
        ...{ seed, tasks: 12, samples: 5, runSlots: 3, submitEveryMs: 2_000 },
        ...{ strikeEveryMs: 2_500, strikesMax: 11, endMs: 120_000 },
      },
      (text) => said.push(text),
    );
    expect(entries.every(isRight), [...said, tableOf(entries)].join('\n')).to.equal(true);
  });
});
