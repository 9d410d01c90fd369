import { expect } from 'chai';
import { EXPORTS_AT_ONCE_MAX, Exports } from './exports.ts';

const never = new AbortController().signal;

describe('exports', () => {
  /** As many as may be at once, each with its first line taken, and one more. */
  async function busy(exports: Exports) {
    const open = () => exports.run(async () => ['first', 'last'].values(), never);
    const held = Array.from({ length: EXPORTS_AT_ONCE_MAX }, open);
    for (const one of held) expect(await one.next()).to.include({ value: 'first' });
    return { held, more: open() };
  }

  it('hold their places until their last line', async () => {
    const { held, more } = await busy(new Exports());
    let isThere = false;
    const first = more.next().finally(() => {
      isThere = true;
    });
    expect(await held[0]?.next()).to.include({ value: 'last' });
    await new Promise(setImmediate);
    expect(isThere, 'while one is to be asked whether there is more').to.equal(false);
    expect(await held[0]?.next()).to.include({ done: true });
    expect(await first).to.include({ value: 'first' });
    for (const one of [...held, more]) await one.return();
  });

  it('end where no line is taken for too long, and others come', async () => {
    const { held, more } = await busy(new Exports(10));
    expect(await more.next()).to.include({ value: 'first' });
    const error = await held[0]?.next().catch((reason: unknown) => reason);
    expect(error).to.include({ reason: 'EXPORTS_LIMIT' });
    for (const one of [...held, more]) await one.return();
  });

  it('give their places up where they fail or their callers leave', async () => {
    const exports = new Exports();
    for (let i = 0; i < EXPORTS_AT_ONCE_MAX; i++) {
      const failed = exports.run(() => Promise.reject(new Error('none')), never);
      expect(await failed.next().catch((error: Error) => error.message)).to.equal('none');
      const left = exports.run(async () => ['first', 'last'].values(), never);
      await left.next();
      await left.return();
    }
    const { held, more } = await busy(exports);
    for (const one of [...held, more]) await one.return();
  });
});
