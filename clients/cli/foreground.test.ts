import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { eventually } from '../../test/support/eventually.ts';
import { runHere, unstopped } from './foreground.ts';

const env = { PATH: '/usr/bin:/bin' };

describe('a command in the foreground', () => {
  it('has the variables that it is given, and ends as it does', async () => {
    expect(await runHere('sh', ['-c', 'test "$A" = b; exit $?'], { ...env, A: 'b' })).to.include({ code: 0 });
    const failed = await runHere('sh', ['-c', 'exit 3'], env);
    expect(failed).to.deep.equal({ code: 3, why: 'it ended with exit code 3', isStopped: false });
    const killed = await runHere('sh', ['-c', 'kill -9 $$'], env);
    expect(killed).to.deep.equal({ code: 137, why: 'it ended with SIGKILL', isStopped: false });
  });

  it('that is not there has never begun', async () => {
    expect(await runHere('no-such-command', [], env)).to.include({ code: 127, isStopped: true });
  });

  it('passes over hang-ups where this process does, as under nohup, with its variables as they are', () => {
    const code = `import { runHere } from ${JSON.stringify(join(import.meta.dirname, 'foreground.ts'))};
      const env = { PATH: '/usr/bin:/bin', 'a.b': 'c' };
      const script = 'kill -HUP $$; tr "\\\\0" " " < /proc/$$/environ';
      const all = [await runHere('/bin/sh', ['-c', script], env), await runHere('no-such-command', [], env)];
      process.stdout.write(JSON.stringify(all.map(({ code, isStopped }) => [code, isStopped])));`;
    const args = ['--input-type=module', '-e', code];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(stderr).to.equal('');
    expect(stdout).to.equal('PATH=/usr/bin:/bin a.b=c [[0,false],[127,true]]');
  });

  it('is stopped with this process, which goes on to say so', async () => {
    const before = process.listenerCount('SIGTERM');
    const running = runHere('sleep', ['60'], env);
    await eventually('it listens', () => process.listenerCount('SIGTERM') > before);
    process.emit('SIGTERM', 'SIGTERM');
    expect(await running).to.deep.equal({ code: 143, why: 'SIGTERM', isStopped: true });
    expect(process.listenerCount('SIGTERM')).to.equal(before);
  });

  it('says itself what an interrupt is: ended well it was a key of its own, else the end', async () => {
    const interrupted = async (script: string) => {
      const before = process.listenerCount('SIGINT');
      const running = runHere('sh', ['-c', script], env);
      await eventually('it listens', () => process.listenerCount('SIGINT') > before);
      process.emit('SIGINT', 'SIGINT');
      return await running;
    };
    expect(await interrupted('exit 0')).to.deep.equal({
      ...{ code: 0, why: 'it ended with exit code 0', isStopped: false },
    });
    expect(await interrupted('exit 1')).to.deep.equal({ code: 1, why: 'SIGINT', isStopped: true });
  });

  it('is not stopped a second time while its end is told', async () => {
    let wasHeard = false;
    await unstopped(async () => {
      wasHeard = process.emit('SIGINT', 'SIGINT');
    });
    expect(wasHeard).to.equal(true);
    expect(process.listenerCount('SIGINT')).to.equal(0);
  });
});
