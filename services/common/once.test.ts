import { expect } from 'chai';
import { ENDED_WORK_KEPT_MAX } from './limits.ts';
import { Once } from './once.ts';

describe('once', () => {
  it('does work once while it runs, and not again behind it', async () => {
    const once = new Once();
    const { promise, resolve } = Promise.withResolvers<void>();
    let times = 0;
    const task = async (): Promise<void> => {
      times++;
      await promise;
    };
    const calls = [once.run('a', task), once.run('a', task)];
    expect(times).to.equal(1);
    resolve();
    await Promise.all(calls);
    await once.run('a', task);
    expect(times).to.equal(1);
  });

  it('does again what failed, and tells everybody who waited', async () => {
    const once = new Once();
    const fail = async (): Promise<void> => {
      throw new Error('no');
    };
    const ends = await Promise.allSettled([once.run('a', fail), once.run('a', fail)]);
    expect(ends.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    let done = false;
    await once.run('a', async () => {
      done = true;
    });
    expect(done).to.equal(true);
  });

  it('forgets the oldest beyond its limit', async () => {
    const once = new Once();
    let first = 0;
    const count = async (): Promise<void> => {
      first++;
    };
    await once.run('first', count);
    for (let i = 0; i < ENDED_WORK_KEPT_MAX - 1; i++) await once.run(`${i}`, async () => {});
    await once.run('first', count);
    expect(first).to.equal(1);
    await once.run('one more', async () => {});
    await once.run('first', count);
    expect(first).to.equal(2);
  });
});
