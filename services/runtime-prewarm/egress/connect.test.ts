import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, isIP, type Server, type Socket } from 'node:net';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { EgressPolicy } from '../domain/egress.ts';
import { connectTo } from './connect.ts';
import { Refusal } from './refusal.ts';

const [LIVE, DEAD] = ['127.0.0.1', '127.0.0.2'];

describe('connections to what an egress list opens', () => {
  const held: Socket[] = [];
  let live: Server;
  let dead: ChildProcess;
  let port: number;
  before(async () => {
    live = createServer((socket) => socket.end('here'));
    await once(live.listen(0, LIVE), 'listening');
    port = (live.address() as AddressInfo).port;
    // It takes none: once its queue is full, a connection is neither made nor refused.
    const script = `require('net').createServer().listen({ host: '${DEAD}', port: ${port}, backlog: 1 }, () => {
      console.log('listening');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    })`;
    dead = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(dead.stdout!, 'data');
    for (let i = 0; i < 4; i++) held.push(connect(port, DEAD).on('error', () => {}));
    await once(held[0]!, 'connect');
  });
  after(async () => {
    for (const socket of held) socket.destroy();
    live.close();
    dead.kill('SIGKILL');
    await once(dead, 'exit');
  });

  async function answerAt(addresses: readonly string[]): Promise<string> {
    const rules = [...new Set(addresses), 'name.example'].map((host) => ({ host, port }));
    const socket = await connectTo(
      new EgressPolicy(rules, []),
      { host: 'name.example', port },
      new AbortController().signal,
      {
        connectMs: 1_000,
        resolve: async () => addresses.map((address) => ({ address, family: isIP(address) })),
      },
    );
    const said = await text(socket);
    socket.destroy();
    return said;
  }

  it('are made to an address that answers, behind one that does not', async () => {
    expect(await answerAt([DEAD, LIVE])).to.equal('here');
  });

  it('are tried by both versions of IP, however many addresses of one come first', async () => {
    expect(await answerAt(['::1', '::1', '::1', '::1', '::1', LIVE])).to.equal('here');
  });

  it('are refused where none of them answers', async () => {
    const error = await answerAt([DEAD, DEAD]).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Refusal).with.property('reason', 'EGRESS_UNREACHABLE');
  });
});
