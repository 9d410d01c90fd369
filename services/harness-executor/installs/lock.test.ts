import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { withLock } from './lock.ts';

describe('the lock of an installation', () => {
  const { signal } = new AbortController();
  const DAY_MS = 86_400_000;
  /** A lock of somebody else is empty. */
  const OWN = 'own';
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-lock-'));
    file = join(folder, 'lock');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  for (const [when, apartMs] of [
    ['long ago', -DAY_MS],
    ['before the clock was set back', DAY_MS],
  ] as const) {
    it(`is taken over where its owner left it ${when}`, async () => {
      writeFileSync(file, '');
      const at = new Date(Date.now() + apartMs);
      utimesSync(file, at, at);
      expect(await withLock(file, signal, async () => 'taken', 1_000)).to.equal('taken');
      expect(existsSync(file)).to.equal(false);
    });
  }

  for (const [how, apartMs] of [
    ['forward', -DAY_MS],
    ['back', DAY_MS],
  ] as const) {
    it(`stays its owner's who works, while the clock is set ${how}`, async () => {
      const ends: string[] = [];
      const taken = Promise.withResolvers<void>();
      const owner = withLock(file, signal, async () => {
        taken.resolve();
        writeFileSync(file, OWN);
        const at = new Date(Date.now() + apartMs);
        utimesSync(file, at, at);
        const { mtimeMs } = statSync(file);
        const isTouched = (): boolean =>
          readFileSync(file, 'utf8') === OWN && statSync(file).mtimeMs !== mtimeMs;
        await eventually(
          'it is touched, or lost',
          () => ends.length > 0 || (existsSync(file) && isTouched()),
        );
        ends.push('owner');
      });
      await taken.promise;
      await Promise.all([owner, withLock(file, signal, async () => ends.push('waiter'))]);
      expect(ends).to.deep.equal(['owner', 'waiter']);
    });
  }
});
