import { expect } from 'chai';
import pino from 'pino';
import { sleep } from '../../common/clock.ts';
import { Effects } from './effects.ts';

const PAUSE_MS = 10;

describe('effects', () => {
  it('tries what fails on and on more and more seldom, and tells it once', async () => {
    const stop = new AbortController();
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const effects = new Effects(log, stop.signal, PAUSE_MS);
    let tries = 0;
    effects.start({
      wanted: () => true,
      run: async () => {
        tries++;
        throw new Error('the store is full');
      },
    });
    // At 0, 1, 3, 7 and 15 pauses.
    await sleep(20 * PAUSE_MS);
    stop.abort();
    await effects.idle();
    expect(tries).to.be.within(2, 5);
    expect(lines.map((line) => JSON.parse(line))).to.have.length(1);
    expect(JSON.parse(lines[0] ?? '')).to.include({
      tries: 1,
      msg: 'side effect failed, will be tried again',
    });
  });
});
