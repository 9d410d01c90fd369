import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { matchesOf } from './match.ts';
import type { MatchWork } from './match-thread.ts';

describe('patterns', () => {
  const work = { patterns: ['a+b', '^c$'], flags: 'u', texts: ['xaab', 'c', ''] };
  const matches = (more: Partial<MatchWork>, timeoutMs = 60_000, signal = AbortSignal.timeout(60_000)) =>
    matchesOf({ ...work, ...more }, { timeoutMs, signal }, 2_000);
  const reason = (found: Promise<unknown>): Promise<unknown> =>
    found.then(
      () => undefined,
      ({ reason: why, message }) => [why, message],
    );
  /** 2 to the power of 40 ways. */
  const endless = { patterns: ['x', '(a+)+$'], texts: [`${'a'.repeat(40)}!`] };

  it('are found in each text', async () => {
    expect(await matches({})).to.deep.equal([
      [true, false],
      [false, true],
      [false, false],
    ]);
    expect(await matches({ patterns: ['C'], flags: 'ui', texts: ['c'] })).to.deep.equal([[true]]);
  });

  it("that do not end are the task's fault, and are named", async () => {
    // Where a thread without patterns is not quick either, it is the machine's.
    let found = await reason(matches(endless));
    for (let tries = 0; tries < 4 && `${found}`.includes('EVALUATION_TIMEOUT'); tries++)
      found = await reason(matches(endless));
    expect(found).to.deep.equal([
      'INVALID_TASK',
      'evaluator.config.patterns[1]: takes longer than 2000 ms: it tries too many ways to match',
    ]);
  });

  it('that have less time than they may take are nobody’s', async () => {
    expect(await reason(matches(endless, 100))).to.include('EVALUATION_TIMEOUT');
  });

  it('end with the evaluation', async () => {
    const stop = new AbortController();
    const found = matches(endless, 60_000, stop.signal).then(
      () => 'found',
      (error: Error) => error.message,
    );
    stop.abort(new Error('stopped'));
    expect(await found).to.equal('stopped');
  });

  it('are not to blame where the node has no descriptors for their thread', () => {
    const code = `import { openSync } from 'node:fs';
      import { matchesOf } from ${JSON.stringify(join(import.meta.dirname, 'match.ts'))};
      try { for (;;) openSync('/dev/null'); } catch {}
      const limits = { timeoutMs: 9_000, signal: new AbortController().signal };
      const error = await matchesOf({ patterns: ['a'], flags: 'u', texts: ['a'] }, limits).catch((thrown) => thrown);
      process.stdout.write(error.reason + ': ' + error.message, () => process.exit());`;
    const node = [process.execPath, '--input-type=module', '-e', code];
    const { stdout } = spawnSync('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', ...node], {
      encoding: 'utf8',
    });
    expect(stdout).to.match(/^SANDBOX_FAILED: the patterns could not be tried: .*EMFILE/);
  });

  it("that cannot be tried are the task's fault", async () => {
    // Many at once: what a thread says may come behind its end. All of them begin late where the machine is busy.
    const limits = { timeoutMs: 60_000, signal: AbortSignal.timeout(60_000) };
    const wrong = (): Promise<unknown> => reason(matchesOf({ ...work, patterns: ['('] }, limits, 60_000));
    const tries = Array.from({ length: 20 }, wrong);
    for (const found of await Promise.all(tries)) expect(found).to.include('INVALID_TASK');
  });
});
