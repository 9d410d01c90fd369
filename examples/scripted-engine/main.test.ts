import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { chat, user } from './testing.ts';

const MAIN = join(import.meta.dirname, 'main.ts');

describe('the scripted engine as a process', function () {
  this.timeout(30_000);
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  function run(...args: string[]): ChildProcess {
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    children.push(child);
    return child;
  }

  async function listening(child: ChildProcess): Promise<string> {
    if (child.stdout === null) throw new Error('no output');
    for await (const line of createInterface(child.stdout)) return JSON.parse(line).url;
    throw new Error('it ended before it listened');
  }

  async function failed(child: ChildProcess): Promise<[number | null, string]> {
    let text = '';
    child.stderr?.on('data', (part) => {
      text += part;
    });
    const [code] = await once(child, 'close');
    return [code, text];
  }

  it('says where it listens, answers, and ends on SIGTERM', async () => {
    const child = run('--dialect', 'vllm', '--model', 'm', '--token-ids', 'false');
    const url = await listening(child);
    const reply = await chat(url, { model: 'm', messages: [user('Hi.')], return_token_ids: true });
    expect(reply.choices[0].message.content).to.contain('scripted engine');
    expect(reply.choices[0].token_ids).to.equal(null);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).to.deep.equal([0, null]);
  });

  it('ends with its lifeline, and only if it has one', async () => {
    const tied = run('--lifeline');
    const free = run();
    await Promise.all([listening(tied), listening(free)]);
    const ended = once(tied, 'exit');
    tied.stdin?.end();
    free.stdin?.end();
    expect(await ended).to.deep.equal([0, null]);
    expect(free.exitCode).to.equal(null);
  });

  it('refuses a command line with one message that names the option', async () => {
    for (const [args, named] of [
      [['--dialect', 'other'], '--dialect'],
      [['--port', 'x'], '--port'],
      [['--token-ms=-1'], 'token_ms'],
      [['--fly'], '--fly'],
      [['--script', 'nowhere.yaml'], 'nowhere.yaml'],
    ] as const) {
      const [code, text] = await failed(run(...args));
      expect(code).to.equal(2);
      expect(text).to.contain('scripted-engine: ').and.contain(named);
    }
  });
});
