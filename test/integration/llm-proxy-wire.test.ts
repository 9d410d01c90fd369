// Connections to engines: kept, bounded, given up.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { ENGINE_READ_AHEAD_BYTES_MAX } from '../../services/common/limits.ts';
import { WIRE_LIMITS, type WireLimits } from '../../services/llm-proxy/engines/wire/connection.ts';
import { Connections } from '../../services/llm-proxy/engines/wire/connections.ts';
import { eventually } from '../support/eventually.ts';

/** A server that does with each connection what the test says. */
class RawServer implements AsyncDisposable {
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  private constructor(serve: (socket: Socket, count: number) => void) {
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      socket.on('error', () => {});
      serve(socket, this.sockets.length);
    });
  }

  static async start(serve: (socket: Socket, count: number) => void): Promise<RawServer> {
    const server = new RawServer(serve);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  connections(limits: Partial<WireLimits> = {}, tls = false): Connections {
    return new Connections({ host: '127.0.0.1', port: this.port, tls }, { ...WIRE_LIMITS, ...limits });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const never = (): AbortSignal => new AbortController().signal;
const text = async (connections: Connections, signal = never()): Promise<string> =>
  (await connections.send(REQUEST, [], signal)).whole(1_000, (body) => body.toString());

/** Whether the kernel has a timer for each connection to the port that is open, as one that is kept alive has. */
function areKeptAlive(port: number): boolean {
  const to = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const fields = lines.map((line) => line.trim().split(/\s+/));
  const open = fields.filter(([, , remote = '', state]) => remote.endsWith(to) && state === '01');
  return open.length > 0 && open.every(([, , , , , timer = '']) => timer.startsWith('02:'));
}

describe('connections to an engine', () => {
  it('are used again, and by several calls at once only each for itself', async () => {
    await using server = await RawServer.start((socket) => socket.on('data', () => socket.write(OK)));
    using connections = server.connections();
    for (let i = 0; i < 3; i++) expect(await text(connections)).to.equal('ok');
    expect(server.sockets.length).to.equal(1);
    await Promise.all(Array.from({ length: 5 }, () => text(connections)));
    expect(server.sockets.length).to.equal(5);
    await Promise.all(Array.from({ length: 5 }, () => text(connections)));
    expect(server.sockets.length).to.equal(5);
  });

  it('are made anew where a kept one was closed, but a new one that is closed is an error', async () => {
    await using server = await RawServer.start((socket, count) => {
      let asked = 0;
      socket.on('data', () => {
        if (count === 3 || ++asked === 2) socket.destroy();
        else socket.write(OK);
      });
    });
    using connections = server.connections();
    expect(await text(connections)).to.equal('ok');
    expect(await text(connections)).to.equal('ok');
    expect(server.sockets.length).to.equal(2);
    const failed = await text(connections).catch((error: Error) => error);
    expect(failed).to.be.an('error');
    expect(server.sockets.length).to.equal(3);
  });

  it('are asked for a sign of life while nothing comes on them', async () => {
    await using server = await RawServer.start((socket) => socket.on('data', () => socket.write(OK)));
    using connections = server.connections();
    expect(await text(connections)).to.equal('ok');
    await eventually('they are kept alive', () => areKeptAlive(server.port));
  });

  it('are made anew where they were idle for long: what lies between may have forgotten them', async () => {
    await using server = await RawServer.start((socket) => socket.on('data', () => socket.write(OK)));
    using connections = server.connections({ idleMs: 20 });
    await Promise.all([text(connections), text(connections)]);
    expect(server.sockets.length).to.equal(2);
    const closed = server.sockets.map((socket) => once(socket, 'close'));
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect(await text(connections)).to.equal('ok');
    await Promise.all(closed);
    expect(server.sockets.length).to.equal(3);
  });

  it('are given up where TLS is not agreed on in time', async () => {
    await using server = await RawServer.start(() => {});
    using connections = server.connections({ connectMs: 100 }, true);
    const failed = await text(connections).catch((error: Error) => error.message);
    expect(failed).to.include('no connection within 100 ms');
  });

  it('are closed where the answer says so, or its call is given up', async () => {
    const closing = OK.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
    await using server = await RawServer.start((socket, count) => {
      socket.on('data', () => socket.write(count === 1 ? closing : OK.slice(0, -1)));
    });
    using connections = server.connections();
    expect(await text(connections)).to.equal('ok');
    const abort = new AbortController();
    const cut = text(connections, abort.signal).catch((error: Error) => error);
    await eventually('the second is asked', () => server.sockets.length === 2);
    const closed = once(server.sockets[1] as Socket, 'close');
    abort.abort(new Error('enough'));
    expect(await cut).to.be.an('error');
    await closed;
    const answer = await connections.send(REQUEST, [], never());
    const given = once(server.sockets[2] as Socket, 'close');
    answer.close();
    await given;
  });

  it('hold an engine back whose reply nobody reads, or is on its way', async () => {
    const piece = Buffer.alloc(256 * 1024, 'x');
    let sent = 0;
    await using server = await RawServer.start((socket) => {
      const pump = (): void => {
        for (let more = true; more && sent < 400; ) {
          sent++;
          more = socket.write(piece);
        }
      };
      socket.on('drain', pump);
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        pump();
      });
    });
    using connections = server.connections();
    const answer = await connections.send(REQUEST, [], never());
    const waits = async (): Promise<void> => {
      let before = -1;
      await eventually('it waits', async () => {
        if (sent === before) return true;
        before = sent;
        await new Promise((resolve) => setTimeout(resolve, 200));
        return false;
      });
    };
    await waits();
    const ahead = ENGINE_READ_AHEAD_BYTES_MAX + 60 * piece.length;
    expect(sent * piece.length).to.be.below(ahead);
    let read = 0;
    const onItsWay = Promise.withResolvers<void>();
    const taken = answer.read({
      take: (bytes) => {
        read += bytes.length;
        if (read >= 100 * piece.length) throw new Error('enough');
      },
      flush: () => onItsWay.promise,
    });
    const first = read;
    await waits();
    expect({ read, more: sent * piece.length < first + 2 * ahead }).to.deep.equal({
      read: first,
      more: true,
    });
    onItsWay.resolve();
    expect(await taken.catch((error: Error) => error.message)).to.equal('enough');
    expect(sent).to.be.at.least(100);
  });

  it('refuse a body that is too large', async () => {
    await using server = await RawServer.start((socket) =>
      socket.on('data', () =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n${'x'.repeat(9000)}`),
      ),
    );
    using connections = server.connections();
    const answer = await connections.send(REQUEST, [], never());
    expect(await answer.whole(1_000, String).catch((error: Error) => error)).to.be.instanceof(RangeError);
    answer.close();
  });
});
