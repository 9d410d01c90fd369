import { once } from 'node:events';
import { createServer as createWeb, type ServerResponse, type Server as Web } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { EgressPolicy } from '../domain/egress.ts';
import { EgressProxy } from './proxy.ts';

const KiB = 1024;
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

describe('egress proxy', () => {
  let web: Web;
  let listener: Server;
  let proxy: EgressProxy;
  let here: string;
  before(async () => {
    web = createWeb((request, response) => {
      request.resume();
      response.end(request.url === '/large' ? Buffer.alloc(256 * KiB) : `at ${request.url}`);
    });
    await once(web.listen(0, '127.0.0.1'), 'listening');
    here = `127.0.0.1:${portOf(web)}`;
  });
  after(() => web.close());
  beforeEach(async () => {
    listener = createServer();
    await once(listener.listen(0, '127.0.0.1'), 'listening');
    const rules = [
      { host: '127.0.0.1', port: portOf(web) },
      { host: '127.0.0.1', port: 1 },
    ];
    proxy = new EgressProxy(listener, {
      policy: new EgressPolicy(rules, []),
      inside: () => undefined,
      bytesMax: 200 * KiB,
    });
  });
  afterEach(() => proxy.close());

  /** Everything that is answered to these bytes. */
  const answerTo = (...lines: string[]): Promise<string> => answerFrom(listener, ...lines);
  async function answerFrom(server: Server, ...lines: string[]): Promise<string> {
    const socket = connect(portOf(server), '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    socket.on('error', () => {});
    return await text(socket).catch(() => 'cut');
  }
  const get = (url: string): Promise<string> =>
    answerTo(`GET ${url} HTTP/1.1`, 'host: x', 'connection: close');
  const bodyOf = (answer: string): { reason: string; rule?: string } =>
    JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))).error;

  it('asks the host of the URL, whatever the header says', async () => {
    expect(await get(`http://${here}/a?b=c`)).to.match(/^HTTP\/1\.1 200 [\s\S]*at \/a\?b=c$/);
  });

  it('is no server itself, and takes no other schemes', async () => {
    for (const url of ['/', `https://${here}/`, 'ftp://a/', 'http:///', '*']) {
      expect(await get(url), url).to.match(/^HTTP\/1\.1 400 /);
    }
    for (const where of ['a b', `x@${here}`, ':443', '/']) {
      expect(await answerTo(`CONNECT ${where} HTTP/1.1`, 'host: x'), where).to.match(/^HTTP\/1\.1 40\d /);
    }
    expect(proxy.denials.count).to.equal(0);
  });

  it('refuses with a body that names reason and rule, to requests and to CONNECT', async () => {
    const denied = { reason: 'EGRESS_DENIED', rule: 'not_listed' };
    expect(bodyOf(await get('http://other.test/'))).to.include(denied);
    const tunnel = await answerTo('CONNECT other.test:443 HTTP/1.1', 'host: other.test:443');
    expect(tunnel).to.match(/^HTTP\/1\.1 403 Forbidden\r\n/);
    expect(bodyOf(tunnel)).to.include(denied);
    expect(bodyOf(await get('http://127.0.0.1:1/'))).to.include({ reason: 'EGRESS_UNREACHABLE' });
    expect(proxy.denials).to.deep.include({ count: 2, targets: ['other.test:80', 'other.test:443'] });
  });

  it('decides about each request of a connection', async () => {
    const one = `GET http://${here}/one HTTP/1.1\r\nhost: x\r\n\r\n`;
    const answer = await answerTo(`${one}GET http://other.test/ HTTP/1.1`, 'host: x');
    expect(answer).to.match(/200 OK[\s\S]*at \/one[\s\S]*403 Forbidden/);
  });

  it('is cut at its limit of bytes, and refuses from then on', async () => {
    expect((await get(`http://${here}/large`)).length).to.be.lessThan(256 * KiB);
    const late = await get(`http://${here}/late`);
    expect(late).to.match(/^HTTP\/1\.1 429 /);
    expect(bodyOf(late)).to.include({ reason: 'EGRESS_LIMIT' });
  });

  it('tells a host whose answer cannot be passed on, and goes on', async () => {
    const heads = ['200 bell\x07', '042 low', '101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade'];
    for (const head of heads) {
      const odd = createServer((socket) => {
        socket.on('error', () => {}).once('data', () => socket.end(`HTTP/1.1 ${head}\r\n\r\n`));
      });
      await once(odd.listen(0, '127.0.0.1'), 'listening');
      const port = portOf(odd);
      const inside = createServer();
      await once(inside.listen(0, '127.0.0.1'), 'listening');
      const one = new EgressProxy(inside, {
        policy: new EgressPolicy([{ host: '127.0.0.1', port }], []),
        inside: () => undefined,
      });
      try {
        const said = await answerFrom(inside, `GET http://127.0.0.1:${port}/ HTTP/1.1`, 'host: x');
        expect(said, head).to.match(/^HTTP\/1\.1 502 /);
      } finally {
        one.close();
        odd.close();
      }
    }
  });

  it('cuts what is silent for too long, and never a call of the LLM proxy', async () => {
    const held: ServerResponse[] = [];
    const slow = createWeb((_request, response) => void held.push(response));
    await once(slow.listen(0, '127.0.0.1'), 'listening');
    const port = portOf(slow);
    const inside = createServer();
    await once(inside.listen(0, '127.0.0.1'), 'listening');
    const one = new EgressProxy(inside, {
      policy: new EgressPolicy([{ host: '127.0.0.1', port }], []),
      inside: (target) =>
        target.host === 'localhost' ? Promise.resolve(connect(port, '127.0.0.1')) : undefined,
      idleMs: 500,
    });
    const ask = (host: string): Promise<string> =>
      answerFrom(inside, `GET http://${host}:${port}/ HTTP/1.1`, 'host: x', 'connection: close');
    const through = (host: string): Promise<string> => {
      const call = `GET / HTTP/1.1\r\nhost: x\r\nconnection: close`;
      return answerFrom(inside, `CONNECT ${host}:${port} HTTP/1.1`, 'host: x', '', call);
    };
    const calls = [ask('localhost'), through('localhost')];
    await eventually('both wait for their answer', () => held.length === 2);
    // Silent from later on, and cut: those had the time to be cut too.
    await Promise.all([ask('127.0.0.1'), through('127.0.0.1')]);
    for (const response of held) response.end('late');
    const said = await Promise.all(calls);
    one.close();
    slow.close();
    expect(said.map((answer) => answer.endsWith('late'))).to.eql([true, true]);
  });

  it('survives whoever leaves in the middle', async () => {
    const starts = [
      `GET http://${here}/ HTTP/1.1\r\nhost: x\r\n\r\n`,
      `CONNECT ${here} HTTP/1.1\r\nhost: x\r\n\r\n`,
    ];
    const upload = `PUT http://${here}/ HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nhalf`;
    for (const start of [...starts, upload, 'GET http://other.test/ HTTP/1.1\r\nhost: x\r\n\r\n']) {
      const socket = connect(portOf(listener), '127.0.0.1');
      await once(socket, 'connect');
      socket.write(start, () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
    expect(await get(`http://${here}/still`)).to.match(/at \/still$/);
  });
});
