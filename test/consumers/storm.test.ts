// The quick form of npm run test:consumers.
import { checkAccount } from './account.ts';
import { storm } from './storm.ts';

describe('consumers: storm', () => {
  it('has each group in one step of the trainer, whatever is killed', async () => {
    checkAccount(await storm({ seed: 7, groups: 40, strikes: 6 }));
  }).timeout(180_000);
});
