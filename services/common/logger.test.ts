import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';

/** What a process writes that logs by these statements; `log` is its logger. */
async function written(statements: string): Promise<Record<string, unknown>[]> {
  const child = start(statements);
  let text = '';
  child.stdout.on('data', (bytes: Buffer) => (text += bytes));
  await once(child, 'close');
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
}

function start(statements: string) {
  const module = new URL('logger.ts', import.meta.url).href;
  const code = `const { createLogger } = await import('${module}'); const log = createLogger('test'); ${statements}`;
  const args = ['--input-type=module', '--eval', code];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
}

const KILL = `process.kill(process.pid, 'SIGKILL')`;
const pause = (ms: number): string => `await new Promise((resolve) => setTimeout(resolve, ${ms}));`;
const many = 'for (let i = 0; i < 1000; i++) log.info({ i }, "line");';

describe('logger', () => {
  it('writes every line, in order, however the process ends by itself', async () => {
    for (const end of ['', 'process.exit(3)', 'throw new Error("x")']) {
      const lines = await written(`${many} ${end}`);
      expect(lines.map(({ i }) => i)).to.deep.equal(Array.from({ length: 1000 }, (_, i) => i));
    }
  });

  it('does not keep a line for longer than a moment', async () => {
    const lines = await written(`log.info('one'); ${pause(2_000)} ${KILL}`);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 'info', service: 'test', msg: 'one' });
  });

  it('does not let a warning wait, nor what is before it', async () => {
    // Less than lines wait for each other.
    const lines = await written(`log.info('one'); log.warn('two'); ${pause(50)} ${KILL}`);
    expect(lines.map(({ msg }) => msg)).to.deep.equal(['one', 'two']);
  });

  it('lets a process end whose reader is gone', async () => {
    for (const end of ['', 'process.exit(0)']) {
      const child = start(`${pause(300)} log.info('one'); ${end}`);
      child.stdout.destroy();
      const [code] = await once(child, 'exit');
      expect(code, end).to.equal(0);
    }
  });

  it('does not wait for a reader that is slow, and says what it dropped', async () => {
    const text = 'x'.repeat(1_000);
    const child = start(
      `for (let i = 0; i < 10_000; i++) log.info({ i, text: '${text}' }, 'line'); log.warn('last'); ${pause(1_500)}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 700));
    let read = '';
    child.stdout.on('data', (bytes: Buffer) => (read += bytes));
    await once(child, 'close');
    const lines = read
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const said = lines.filter(({ msg }) => msg === 'line').length;
    const dropped = lines.find(({ msg }) => msg === 'log lines dropped');
    expect(dropped.lines + said + lines.filter(({ msg }) => msg === 'last').length).to.equal(10_001);
  });

  it('tells no credential', async () => {
    const fields = '{ capability: "s3cret", nested: { api_key: "s3cret", authorization: "s3cret", b: 1 } }';
    const lines = await written(`log.info(${fields}, 'one'); log.child({ api_key: "s3cret" }).info('two');`);
    expect(JSON.stringify(lines)).not.to.include('s3cret');
    expect(lines[0]?.['nested']).to.include({ b: 1 });
  });
});
