import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { sleep } from '../../common/clock.ts';
import { greetingLine } from '../../common/greeting.ts';
import { forwardConnections, ProxyLine, proxyAt } from './forward.ts';

describe('connections to the LLM proxy', () => {
  let folder: string;
  let path: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-forward-'));
    path = join(folder, 'proxy.sock');
  });
  after(() => rmSync(folder, { recursive: true }));

  /** One that says back what it is told. */
  async function startProxy(): Promise<Server> {
    const proxy = createServer({ allowHalfOpen: true }, (socket) =>
      socket.on('error', () => {}).pipe(socket),
    );
    proxy.listen(path);
    await once(proxy, 'listening');
    return proxy;
  }

  /** A process that takes connections and ends each at once. */
  async function startEnding(): Promise<ChildProcess> {
    const script = `require('net').createServer((one) => one.destroy()).listen(process.argv[1], () => console.log('ready'))`;
    const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout as Readable, 'data');
    return child;
  }

  it('are none where it ends one before it is greeted, as while this process stood still', async () => {
    const proxy = await startEnding();
    try {
      const connecting = proxyAt(path)('s-1');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      expect(await connecting).to.equal(undefined);
    } finally {
      proxy.kill();
      await once(proxy, 'exit');
      rmSync(path, { force: true });
    }
  });

  it('tell that the proxy was away at the latest try, though the harness left before it was given up', async () => {
    const line = new ProxyLine(proxyAt(path), 's-1');
    const inside = createServer();
    const forwarding = forwardConnections(inside, () => line.connect());
    inside.listen(0, '127.0.0.1');
    await once(inside, 'listening');
    const { port } = inside.address() as AddressInfo;
    expect(line.isAway).to.equal(false);
    const leaving = connect(port, '127.0.0.1');
    await eventually('it was tried', () => line.isAway);
    leaving.destroy();
    const proxy = await startProxy();
    const socket = connect(port, '127.0.0.1');
    socket.end('hello');
    await text(socket);
    expect([line.isAway, forwarding.failures]).to.deep.equal([false, 0]);
    forwarding.close();
    proxy.close();
  });

  /** A process that reads and says so; what has a `-` is answered and ended. */
  async function startSilent(): Promise<ChildProcess> {
    const script = `require('net').createServer((one) => one.on('data', (all) => {
      if (/-/.test(all)) one.end('HTTP/1.1 204 No Content\\r\\n\\r\\n');
      else if (/GET/.test(all)) console.log('asked');
    })).listen(process.argv[1], () => console.log('ready'))`;
    const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout as Readable, 'data');
    return child;
  }

  it('tell that the proxy is away where it is killed in a call, until it is reached again', async () => {
    const proxy = await startSilent();
    const line = new ProxyLine(proxyAt(path), 's1');
    const inside = createServer();
    const forwarding = forwardConnections(inside, () => line.connect());
    inside.listen(0, '127.0.0.1');
    await once(inside, 'listening');
    const { port } = inside.address() as AddressInfo;
    try {
      const answered = connect(port, '127.0.0.1');
      answered.write('GET -');
      expect(await text(answered)).to.contain('204');
      const asked = once(proxy.stdout as Readable, 'data');
      const calling = connect(port, '127.0.0.1');
      calling.write('GET');
      await asked;
      expect(line.isAway).to.equal(false);
      proxy.kill('SIGKILL');
      expect(await text(calling)).to.equal('');
      await eventually('it is away', () => line.isAway);
      rmSync(path);
      const next = await startProxy();
      const again = connect(port, '127.0.0.1');
      again.end('hello');
      await text(again);
      expect(line.isAway).to.equal(false);
      next.close();
    } finally {
      proxy.kill('SIGKILL');
      forwarding.close();
      rmSync(path, { force: true });
    }
  });

  it('tell so, too, where the one that is killed still takes a connection', async () => {
    const [cut, last] = [new Socket(), new Socket()];
    const left = [cut, last];
    const line = new ProxyLine(async () => left.shift(), 's1');
    await line.connect();
    Object.defineProperty(cut, 'bytesWritten', { value: 100 });
    cut.emit('end');
    // As where the command ends by that.
    const looked = line.looked();
    await eventually('it is looked', () => left.length === 0);
    expect(line.isAway).to.equal(false);
    last.emit('end');
    await looked;
    expect(line.isAway).to.equal(true);
  });

  it('are looked at for no longer than is left, however long one took to be made', async () => {
    const [cut, last] = [new Socket(), new Socket()];
    const made = [Promise.resolve(cut), sleep(600).then(() => last)];
    const line = new ProxyLine(async () => await made.shift(), 's1');
    await line.connect();
    Object.defineProperty(cut, 'bytesWritten', { value: 100 });
    const warnings: Error[] = [];
    const warned = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', warned);
    cut.emit('end');
    await line.looked();
    process.off('warning', warned);
    expect([last.destroyed, line.isAway, warnings]).to.deep.equal([true, false, []]);
  });

  it('tell nothing where the proxy is killed between calls', async () => {
    const proxy = await startSilent();
    let tries = 0;
    const line = new ProxyLine(async (session) => {
      tries++;
      return await proxyAt(path)(session);
    }, 's1');
    const socket = await line.connect();
    const closed = new Promise((resolve) => socket?.once('close', resolve).resume());
    proxy.kill('SIGKILL');
    await closed;
    expect([line.isAway, tries]).to.deep.equal([false, 1]);
    rmSync(path, { force: true });
  });

  it('are made to the next one that listens there, and what is inside does not notice', async () => {
    let tries = 0;
    let proxy = await startProxy();
    const inside = createServer();
    const forwarding = forwardConnections(inside, async () => {
      const connecting = proxyAt(path)('s-1');
      if (tries++ > 0) return await connecting;
      proxy.close();
      const none = await connecting;
      proxy = await startProxy();
      return none;
    });
    inside.listen(0, '127.0.0.1');
    await once(inside, 'listening');
    const socket = connect((inside.address() as AddressInfo).port, '127.0.0.1');
    socket.end('hello');
    expect(await text(socket)).to.equal(`${greetingLine('s-1')}hello`);
    expect([tries, forwarding.failures]).to.deep.equal([2, 0]);
    forwarding.close();
    proxy.close();
  });
});
