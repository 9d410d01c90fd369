import { expect } from 'chai';
import { sleep } from '../../common/clock.ts';
import { OwnTime } from './own-time.ts';

describe("a plug-in's own time", () => {
  it('stands still while something is done for it, and goes on then', async () => {
    const time = new OwnTime();
    const doing = time.without(() => sleep(150));
    let isOver = false;
    const over = time.over(50, new AbortController().signal).then(() => (isOver = true));
    await doing;
    expect(isOver).to.equal(false);
    await over;
  });

  it('goes on where nothing is done for it', async () => {
    const time = new OwnTime();
    let isOver = false;
    const over = time.over(50, new AbortController().signal).then(() => (isOver = true));
    await sleep(150);
    expect(isOver).to.equal(true);
    await over;
  });

  it('is waited for no longer than the signal lets it', async () => {
    const stop = new AbortController();
    const over = new OwnTime().over(60_000, stop.signal).catch((reason) => reason);
    stop.abort('enough');
    expect(await over).to.equal('enough');
  });
});
