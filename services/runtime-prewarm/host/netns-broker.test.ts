import { readFileSync } from 'node:fs';
import process from 'node:process';
import { expect } from 'chai';
import type { PolarError } from '../../common/errors.ts';
import { NetnsBroker } from './netns-broker.ts';
import { findPython } from './tools.ts';

describe('listeners in the networks of sandboxes', () => {
  /** Of a process that is not there: its helper says so. */
  const NOBODY = 2 ** 22 + 1;
  const helpers = (): number[] =>
    readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
      .split(' ')
      .filter(
        (pid) => pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('netns_broker.py'),
      )
      .map(Number);
  const failureOf = (opening: Promise<unknown>): Promise<PolarError> =>
    opening.then(
      () => expect.fail('it was opened'),
      (error: PolarError) => error,
    );

  it('fail by name where their helper stands still, and the next one has another', async () => {
    await using broker = new NetnsBroker(findPython(process.env['PATH'] ?? '') ?? 'python3', false, 2_000);
    expect((await failureOf(broker.open(NOBODY, 1))).message).to.include('No such file');
    const [helper = 0, ...others] = helpers();
    expect(others).to.deep.equal([]);
    process.kill(helper, 'SIGSTOP');
    const opening = [broker.open(NOBODY, 1), broker.open(NOBODY, 2)].map(failureOf);
    for (const error of await Promise.all(opening)) {
      expect(error.reason).to.equal('SANDBOX_FAILED');
      expect(error.message).to.match(/no answer in 2000 ms|the helper process ended/);
    }
    expect((await failureOf(broker.open(NOBODY, 1))).message).to.include('No such file');
    expect(helpers()).to.not.include(helper);
  });

  it('are opened where it is this process that stood still', async function () {
    if (process.getuid?.() !== 0) this.skip();
    await using broker = new NetnsBroker(findPython(process.env['PATH'] ?? '') ?? 'python3', false, 1_000);
    const open = async (): Promise<void> => void (await broker.open(process.pid, 0)).close();
    await open();
    const opening = [open(), open(), open()];
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    const before = helpers();
    await Promise.all(opening);
    await open();
    expect(helpers()).to.deep.equal(before);
  });
});
