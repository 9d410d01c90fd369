import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { sleep } from '../../common/clock.ts';
import { TimeLimit } from './time-limit.ts';

const LONG_MS = 60_000;

/** A limit, and how it was over: by silence or not. */
function limited(totalMs: number, silenceMs: number): { limit: TimeLimit; over: boolean[] } {
  const over: boolean[] = [];
  return { limit: new TimeLimit({ totalMs, silenceMs }, (isSilent) => over.push(isSilent)), over };
}

describe('a time limit', () => {
  it('is over for nobody who has disposed of it, held or not', async () => {
    const all = [1, 2].map(() => limited(1, LONG_MS));
    for (const { limit } of all) limit.start();
    const held = all[0]?.limit.hold();
    for (const { limit } of all) limit[Symbol.dispose]();
    held?.[Symbol.dispose]();
    await sleep(20);
    expect(all.flatMap(({ over }) => over)).to.deep.equal([]);
  });

  it('does not count what passes before it is started, nor while it is held', async () => {
    const { limit, over } = limited(20, LONG_MS);
    limit.hold()[Symbol.dispose]();
    await sleep(60);
    const held = limit.hold();
    limit.start();
    await sleep(60);
    expect(over).to.deep.equal([]);
    held[Symbol.dispose]();
    await eventually('it is over', () => over.length > 0);
    await sleep(60);
    expect(over).to.deep.equal([false]);
  });

  it('lets go on what is heard, and is over for what falls silent', async () => {
    const { limit, over } = limited(LONG_MS, 150);
    limit.start();
    const comes = setInterval(() => limit.heard(), 10);
    await sleep(600);
    clearInterval(comes);
    expect(over).to.deep.equal([]);
    await eventually('it is over', () => over.length > 0);
    expect(over).to.deep.equal([true]);
  });

  it('lets all of its time to what has not begun to come, and to another try', async () => {
    const { limit, over } = limited(LONG_MS, 20);
    limit.start();
    await sleep(100);
    limit.heard();
    limit.start();
    await sleep(100);
    expect(over).to.deep.equal([]);
    limit[Symbol.dispose]();
  });

  it('has an end for what is heard, too', async () => {
    const { limit, over } = limited(100, 30);
    limit.start();
    const comes = setInterval(() => limit.heard(), 5);
    await eventually('it is over', () => over.length > 0);
    clearInterval(comes);
    expect(over).to.deep.equal([false]);
  });

  it('takes no short while before its end for silence', async () => {
    const { limit, over } = limited(220, 200);
    limit.start();
    limit.heard();
    await eventually('it is over', () => over.length > 0);
    expect(over).to.deep.equal([false]);
  });
});
