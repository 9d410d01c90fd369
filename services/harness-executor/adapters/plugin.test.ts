import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { Adapter, HarnessContext } from './adapter.ts';
import { loadPlugin } from './plugin.ts';

const context: HarnessContext = {
  ...{ instruction: 'i', modelName: '', settings: {}, step: undefined, mcpServers: [], python: '' },
  ...{ openaiUrl: 'http://127.0.0.1/v1', sessionUrl: 'http://127.0.0.1', capability: 'c' },
};
const facts = { exitCode: 3, timedOut: false, outOfMemory: false, proxyConnectFailures: 0, proxyAway: false };

describe('adapters of plug-ins', () => {
  let folder: string;
  let count = 0;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-plugin-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function load(code: string, loadMs?: number): Promise<Adapter> {
    const name = `${++count}.mjs`;
    writeFileSync(join(folder, name), code);
    return await loadPlugin(folder, name, loadMs);
  }
  const adapter = (rest: string): Promise<Adapter> =>
    load(`export const adapter = { name: 'echo', command: () => ({ argv: ['echo'] }), ${rest} };`);
  const messageOf = async (task: () => unknown): Promise<string> => {
    try {
      await task();
    } catch (error) {
      expect(error).to.be.instanceOf(PolarError).and.include({ reason: 'HARNESS_PLUGIN_INVALID' });
      return (error as PolarError).message;
    }
    throw new Error('nothing was wrong with it');
  };

  it('may leave out all but a name and a command', async () => {
    const echo = await adapter('');
    expect(echo.command(context)).to.deep.equal({ argv: ['echo'], env: {} });
    expect(echo.files(context)).to.deep.equal([]);
    expect(echo.readExit(facts).outcome).to.equal(Outcome.HARNESS_ERROR);
  });

  it('are waited for so long, and no longer', async () => {
    const never = 'export const adapter = await new Promise(() => {});';
    expect(await messageOf(() => load(never, 50))).to.contain('it was not loaded in 50 ms');
  });

  it('that do not come back from a call are stopped in it', async () => {
    const one = await adapter('files() { for (;;) try { for (;;); } catch {} }');
    expect(await messageOf(() => one.files(context))).to.contain('files took longer than 1000 ms');
    expect(one.command(context).argv).to.deep.equal(['echo']);
  });

  it('that throw as they are loaded, whatever it is, say so', async () => {
    expect(await messageOf(() => load("throw new Error('no key');"))).to.contain('no key');
    expect(await messageOf(() => load("throw 'no text';"))).to.contain('no text');
    expect(await messageOf(() => load('throw undefined;'))).to.contain('cannot be loaded');
  });

  it('are told what is wrong with what they give', async () => {
    const wrong = async (rest: string, call: (one: Adapter) => unknown): Promise<string> => {
      const one = await adapter(rest);
      return await messageOf(() => call(one));
    };
    const command = (one: Adapter): unknown => one.command(context);
    const files = (one: Adapter): unknown => one.files(context);
    const readExit = (one: Adapter): unknown => one.readExit(facts);
    expect(await wrong("command() { throw new Error('settings.greeting is missing'); }", command)).to.contain(
      'command threw: settings.greeting is missing',
    );
    expect(await wrong("command: () => ({ argv: 'echo' })", command)).to.contain('argv');
    expect(await wrong("command: () => ({ argv: ['a'], env: { A: 1 } })", command)).to.contain('env.A');
    expect(await wrong("command: () => ({ argv: ['a\\0'] })", command)).to.contain(
      'argv[0]: must not hold a NUL',
    );
    expect(await wrong("command: () => ({ argv: ['x'.repeat(131072)] })", command)).to.contain(
      '131071 bytes',
    );
    expect(await wrong("command: () => ({ argv: ['a'], env: { 'A B': '1' } })", command)).to.contain(
      'env: must have names',
    );
    expect(await wrong("command: () => ({ argv: ['a'], environment: {} })", command)).to.contain(
      'environment: unknown key',
    );
    expect(await wrong("async command() { throw new Error('late'); }", command)).to.contain('a promise');
    expect(await wrong("files: () => [{ path: 'x', content: 'y' }]", files)).to.contain('[0].path');
    expect(await wrong("files: () => [{ path: '/a/../b', content: '' }]", files)).to.contain(
      '[0].path: must hold',
    );
    expect(await wrong("files: () => [{ path: '/a', content: '', mode: 1 }]", files)).to.contain(
      'mode: unknown key',
    );
    expect(await wrong('files: () => undefined', files)).to.contain('files');
    expect(await wrong('readExit: () => undefined', readExit)).to.contain('readExit');
    expect(await wrong("readExit: () => ({ outcome: 'COMPLETED' })", readExit)).to.contain('outcome');
  });

  it('may read an exit in their own way', async () => {
    const { readExit } = await adapter(
      "readExit: ({ exitCode }) => ({ outcome: 3, failure: { reason: 'HARNESS_EXIT', message: 'code ' + exitCode } })",
    );
    const { outcome, failure } = readExit(facts);
    expect(outcome).to.equal(Outcome.HARNESS_ERROR);
    expect(failure).to.include({ reason: 'HARNESS_EXIT', message: 'code 3', infrastructure: false });
    const short = await adapter(
      "readExit: () => ({ outcome: 3, failure: { reason: 'OWN', infrastructure: true } })",
    );
    expect(short.readExit(facts).failure).to.include({ reason: 'OWN', message: '', infrastructure: false });
  });
});
