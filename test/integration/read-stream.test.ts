// Server streams as service clients read them, from a server of Connect's own library and from what is none.
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Client } from '@connectrpc/connect';
import { expect } from 'chai';
import {
  type ExecResponse,
  RuntimeService,
} from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { PolarError } from '../../services/common/errors.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';

type Exec = (request: { readonly runtimeId: string }, signal: AbortSignal) => AsyncIterable<Uint8Array>;
type Runtimes = Client<typeof RuntimeService>;

const BYTES_MAX = 3_000_000;

async function read(events: AsyncIterable<ExecResponse>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const { event } of events) if (event.case === 'stdout') all.push(event.value);
  return all;
}

const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error: PolarError) => error.reason,
  );

describe('a server stream of a service client', () => {
  let server: RunningServer;
  let client: Runtimes;
  /** What the handler does; each test sets it. */
  let exec: Exec;

  before(async () => {
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [RuntimeService.typeName],
      routes: (router) =>
        router.service(RuntimeService, {
          async *exec(request, { signal }) {
            for await (const value of exec(request, signal)) yield { event: { case: 'stdout', value } };
          },
        }),
    });
    client = createServiceClient(RuntimeService, `http://127.0.0.1:${server.port}`, {
      readMaxBytes: BYTES_MAX,
    });
  });
  after(() => server.close());

  it('has messages of any size, in order', async () => {
    const sizes = [0, 1, 200_000, 3, 2_500_000, 16_384, 70_000];
    exec = async function* ({ runtimeId }) {
      yield Buffer.from(runtimeId);
      for (const [i, size] of sizes.entries()) yield Buffer.alloc(size, i);
    };
    const [first, ...all] = await read(client.exec({ runtimeId: 'asked' }));
    expect(Buffer.from(first ?? []).toString()).to.equal('asked');
    expect(all.map((one) => one.length)).to.deep.equal(sizes);
    expect(all.every((one, i) => one.every((byte) => byte === i))).to.equal(true);
  });

  it('ends with what the server said, before the first message and behind one', async () => {
    exec = async function* ({ runtimeId }) {
      if (runtimeId === 'none') throw new PolarError('NOT_FOUND', 'there is no such runtime');
      yield Buffer.from('x');
      throw new PolarError('INVALID_REQUEST', 'wrong', { fields: [{ field: 'argv', description: 'wrong' }] });
    };
    expect(await reasonOf(read(client.exec({ runtimeId: 'none' })))).to.equal('NOT_FOUND');
    const seen: unknown[] = [];
    try {
      for await (const { event } of client.exec({ runtimeId: 'some' })) seen.push(event.case);
    } catch (error) {
      expect(error).to.be.instanceOf(PolarError).with.property('reason', 'INVALID_REQUEST');
      seen.push((error as PolarError).fields);
    }
    expect(seen).to.deep.equal(['stdout', [{ field: 'argv', description: 'wrong' }]]);
  });

  it('ends when its caller leaves or its time is over, here and there', async () => {
    const left = Promise.withResolvers<void>();
    exec = async function* (_, signal) {
      yield Buffer.from('x');
      await once(signal, 'abort');
      left.resolve();
    };
    const caller = new AbortController();
    const reading = read(client.exec({}, { signal: caller.signal }));
    caller.abort();
    expect(await reasonOf(reading)).to.equal('NODE_LOST');
    expect(await reasonOf(read(client.exec({}, { signal: caller.signal })))).to.equal('NODE_LOST');
    expect(await reasonOf(read(client.exec({}, { timeoutMs: 50 })))).to.equal('STAGE_TIMEOUT');
    await left.promise;
    const broken = Promise.withResolvers<void>();
    exec = async function* (_, signal) {
      yield Buffer.from('x');
      await once(signal, 'abort');
      broken.resolve();
    };
    for await (const _ of client.exec({})) break;
    await broken.promise;
  });

  it('ends in its time where a connection is never made', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const sockets: Socket[] = [];
    silent.on('connection', (socket) => sockets.push(socket.on('error', () => {})));
    const call = createServiceClient(RuntimeService, url).exec({}, { timeoutMs: 50 });
    expect(await reasonOf(read(call))).to.equal('STAGE_TIMEOUT');
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it('refuses a message above the limit', async () => {
    exec = async function* () {
      yield Buffer.alloc(BYTES_MAX);
    };
    expect(await reasonOf(read(client.exec({})))).to.equal('INTERNAL');
  });
});

describe('a server stream of a server that is none', () => {
  /** The reason of a call to a server that answers so. */
  async function asked(answer: (stream: http2.ServerHttp2Stream) => void): Promise<string> {
    const server = http2
      .createServer()
      .on('stream', (stream: http2.ServerHttp2Stream) => {
        stream.on('error', () => {});
        answer(stream);
      })
      .on('sessionError', () => {});
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      return await reasonOf(read(createServiceClient(RuntimeService, url).exec({})));
    } finally {
      server.close();
    }
  }
  const TYPE = { 'content-type': 'application/connect+proto' };

  it('is a node that is lost where nobody listens, or the answer breaks off', async () => {
    const nowhere = createServiceClient(RuntimeService, 'http://127.0.0.1:1');
    expect(await reasonOf(read(nowhere.exec({})))).to.equal('NODE_LOST');
    expect(await asked((stream) => stream.session?.destroy())).to.equal('NODE_LOST');
    expect(await asked((stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM))).to.equal(
      'NODE_LOST',
    );
    expect(
      await asked((stream) => {
        stream.respond(TYPE);
        stream.end(Buffer.from([0, 0, 0, 0, 9, 1]));
      }),
    ).to.equal('NODE_LOST');
    expect(
      await asked((stream) => {
        stream.respond({ ':status': 503 });
        stream.end('busy');
      }),
    ).to.equal('NODE_LOST');
  });

  it('is what it is where the answer is another one', async () => {
    const other = await asked((stream) => {
      stream.respond({ 'content-type': 'text/html' });
      stream.end('<html></html>');
    });
    expect(other).to.equal('INTERNAL');
  });
});
