import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { eventually } from '../../test/support/eventually.ts';
import { Deadline, Semaphore, settledWithin, sleep } from './clock.ts';

const FAR_MS = 60_000;

describe('a deadline', () => {
  it('fires when the time is over, and says so', async () => {
    using deadline = new Deadline(5, new AbortController().signal);
    await sleep(FAR_MS, deadline.signal);
    expect(deadline.isOver).to.equal(true);
    expect(deadline.signal.reason).to.have.property('name', 'TimeoutError');
  });

  it('fires with what it was given, and with its reason', () => {
    const [one, other] = [new AbortController(), new AbortController()];
    using deadline = new Deadline(FAR_MS, one.signal, other.signal);
    const reason = new Error('left');
    other.abort(reason);
    expect(deadline.signal.reason).to.equal(reason);
    expect(deadline.isOver).to.equal(false);
  });

  it('has fired where what it was given had', () => {
    const reason = new Error('left before');
    using deadline = new Deadline(FAR_MS, AbortSignal.abort(reason));
    expect(deadline.signal.reason).to.equal(reason);
  });

  it('leaves nothing behind', () => {
    const given = new AbortController();
    {
      using _ = new Deadline(FAR_MS, given.signal);
      expect(getEventListeners(given.signal, 'abort')).to.have.length(1);
    }
    expect(getEventListeners(given.signal, 'abort')).to.have.length(0);
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout')).to.eql([]);
  });
});

describe('a semaphore', () => {
  it('lets those go that leave before their turn, and turns to the next', async () => {
    const semaphore = new Semaphore(1);
    await semaphore.acquire();
    const leaves = new AbortController();
    const left = semaphore.acquire(leaves.signal).catch((reason: unknown) => reason);
    const stays = new AbortController();
    const next = semaphore.acquire(stays.signal);
    const reason = new Error('left');
    leaves.abort(reason);
    expect(await left).to.equal(reason);
    semaphore.release();
    // Its turn has come: it has the place, and must give it back.
    stays.abort();
    await next;
    expect(semaphore.tryAcquire()).to.equal(false);
    semaphore.release();
    expect(semaphore.tryAcquire()).to.equal(true);
    expect(getEventListeners(stays.signal, 'abort')).to.have.length(0);
  });
});

describe('waiting for a promise to settle', () => {
  it('ends when the time is over', async () => {
    await settledWithin(new Promise(() => {}), 5);
  });

  it('ends with it, however it settles, and leaves no timer behind', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    // The test's own is set by now.
    await sleep(1);
    const before = timers();
    await settledWithin(Promise.reject(new Error('refused')), FAR_MS);
    // Others come and go beside it.
    await eventually('its timer is gone', () => timers() <= before);
  });
});
