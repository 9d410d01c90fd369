import process from 'node:process';
import { expect } from 'chai';
import { eventually } from '../../test/support/eventually.ts';
import { runHere } from './foreground.ts';

describe('a command in the foreground', () => {
  it('has the variables that it is given, and ends as it does', async () => {
    expect(await runHere('sh', ['-c', 'test "$A" = b; exit $?'], { A: 'b' })).to.include({ code: 0 });
    const failed = await runHere('sh', ['-c', 'exit 3'], {});
    expect(failed).to.deep.equal({ code: 3, why: 'it ended with exit code 3', isStopped: false });
    const killed = await runHere('sh', ['-c', 'kill -9 $$'], {});
    expect(killed).to.deep.equal({ code: 137, why: 'it ended with SIGKILL', isStopped: false });
  });

  it('that is not there has never begun', async () => {
    expect(await runHere('no-such-command', [], {})).to.include({ code: 127, isStopped: true });
  });

  it('is stopped with this process, which goes on to say so', async () => {
    const before = process.listenerCount('SIGTERM');
    const running = runHere('sleep', ['60'], {});
    await eventually('it listens', () => process.listenerCount('SIGTERM') > before);
    process.emit('SIGTERM', 'SIGTERM');
    expect(await running).to.deep.equal({ code: 143, why: 'SIGTERM', isStopped: true });
    expect(process.listenerCount('SIGTERM')).to.equal(before);
  });
});
