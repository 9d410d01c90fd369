// gRPC streams of bytes, read by a client that shares no code with the server.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { connect } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { BYTE_STREAM_REQUEST_BYTES_MAX } from '../../services/common/byte-stream.ts';
import { PolarError } from '../../services/common/errors.ts';
import { giveBack } from '../../services/common/memory.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { eventually } from '../support/eventually.ts';

const PATH = `/${TrajectoryService.typeName}/StreamTrajectories`;
const asIs = (bytes: Buffer): Buffer => bytes;

describe('byte stream', () => {
  let server: RunningServer;
  let client: grpc.Client;
  /** What the handler is asked and does; each test sets it. */
  let open: (request: Uint8Array, signal: AbortSignal) => AsyncIterable<readonly Uint8Array[]>;
  let onWritten: (parts: readonly Uint8Array[]) => void;

  beforeEach(async () => {
    onWritten = () => {};
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [TrajectoryService.typeName],
      routes: (router) =>
        router.service(TrajectoryService, {
          async *streamTrajectories() {
            yield { seeks: 7n };
          },
        }),
      byteStreams: [
        {
          path: PATH,
          async *open(request, signal) {
            for await (const parts of open(request, signal))
              yield { parts, onWritten: () => onWritten(parts) };
          },
        },
      ],
    });
    client = new grpc.Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
  });
  afterEach(async () => {
    client.close();
    await server.close();
  });

  const call = (request: Buffer, options: grpc.CallOptions = {}): grpc.ClientReadableStream<Buffer> =>
    client.makeServerStreamRequest(PATH, asIs, asIs, request, options);

  async function read(
    stream: grpc.ClientReadableStream<Buffer>,
  ): Promise<{ readonly messages: Buffer[]; readonly error?: grpc.ServiceError }> {
    const messages: Buffer[] = [];
    try {
      for await (const message of stream) messages.push(message as Buffer);
      return { messages };
    } catch (error) {
      return { messages, error: error as grpc.ServiceError };
    }
  }

  it('gives a message of many pieces, of none and of megabytes as they are', async () => {
    const large = Buffer.alloc(5_000_000, 'x');
    open = async function* (request) {
      yield [request, Buffer.from('-'), request];
      yield [];
      yield [large.subarray(0, 10), large.subarray(10)];
    };
    const { messages, error } = await read(call(Buffer.from('ask')));
    expect(error).to.equal(undefined);
    expect(messages.map((one) => one.length)).to.deep.equal([7, 0, large.length]);
    expect(messages[0]?.toString()).to.equal('ask-ask');
    expect(messages[2]?.equals(large)).to.equal(true);
  });

  it('says when the memory of a message may end, and not before', async () => {
    const sizes = [3, 200_000, 10, 15_000, 1_100_000, 70_000, 1];
    const sent: Buffer[] = [];
    open = async function* () {
      for (let i = 0; i < 20; i++) {
        const parts = sizes.map((size) => Buffer.from(new Uint8Array(randomBytes(size)).buffer));
        sent.push(Buffer.concat(parts));
        yield parts;
      }
    };
    let written = 0;
    onWritten = (parts) => {
      written++;
      giveBack(parts);
      expect(parts.map(({ byteLength }) => byteLength)).to.deep.equal([3, 0, 10, 0, 0, 0, 1]);
    };
    const { messages, error } = await read(call(Buffer.from('x')));
    expect(error).to.equal(undefined);
    expect(messages.every((message, i) => message.equals(sent[i] as Buffer))).to.equal(true);
    expect(messages).to.have.lengthOf(20);
    expect(written).to.equal(20);
  });

  it('ends with the typed error of the handler, before the first message or behind it', async () => {
    for (const before of [0, 2]) {
      open = async function* () {
        for (let i = 0; i < before; i++) yield [Buffer.from('m')];
        throw new PolarError('STREAM_REPLACED', 'ünterbrochen');
      };
      const { messages, error } = await read(call(Buffer.alloc(0)));
      expect(messages).to.have.length(before);
      expect(error).to.include({ code: grpc.status.ABORTED, details: 'ünterbrochen' });
      expect(error?.metadata.get('grpc-status-details-bin').toString()).to.include('STREAM_REPLACED');
    }
  });

  it('refuses a request that is too large', async () => {
    open = async function* () {
      yield [];
    };
    const { error } = await read(call(Buffer.alloc(BYTE_STREAM_REQUEST_BYTES_MAX)));
    expect(error?.code).to.equal(grpc.status.INVALID_ARGUMENT);
  });

  it('stops the handler when the caller leaves, when its time is over, and when the server stops', async () => {
    const ended: unknown[] = [];
    open = async function* (_, signal) {
      yield [Buffer.from('m')];
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      ended.push(signal.reason);
      signal.throwIfAborted();
    };
    const left = call(Buffer.alloc(0));
    left.once('data', () => left.cancel());
    expect((await read(left)).error?.code).to.equal(grpc.status.CANCELLED);
    const late = await read(call(Buffer.alloc(0), { deadline: Date.now() + 200 }));
    expect(late.error?.code).to.equal(grpc.status.DEADLINE_EXCEEDED);
    const stopped = call(Buffer.alloc(0));
    stopped.once('data', () => void server.close());
    expect((await read(stopped)).error?.code).to.equal(grpc.status.UNAVAILABLE);
    expect(ended).to.have.length(3);
  });

  it('stops the handler when the connection of the caller ends without a word', async () => {
    const { promise: reason, resolve } = Promise.withResolvers<unknown>();
    open = async function* (_, signal) {
      yield [];
      await new Promise((aborted) => signal.addEventListener('abort', aborted, { once: true }));
      resolve(signal.reason);
    };
    // What the kernel does for a process that is killed.
    const socket = connect(server.port, '127.0.0.1');
    const session = http2.connect(`http://127.0.0.1:${server.port}`, { createConnection: () => socket });
    session.on('error', () => {});
    const headers = { ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' };
    const request = session.request(headers).on('error', () => {});
    request.end(Buffer.alloc(5));
    await once(request, 'response');
    socket.end();
    expect(await reason).to.include({ reason: 'CANCELLED' });
    session.destroy();
  });

  it('holds the handler back while the caller does not read', async () => {
    let sent = 0;
    open = async function* () {
      for (; sent < 64; sent++) yield [Buffer.alloc(1_000_000)];
    };
    const stream = call(Buffer.alloc(0));
    await new Promise((resolve) => stream.once('readable', resolve));
    await new Promise((resolve) => setTimeout(resolve, 300));
    // Some lie in the caller's own queue, none in the server's.
    expect(sent).to.be.lessThan(40);
    expect((await read(stream)).messages).to.have.length(64);
  });

  it('says why it ends also where the caller is behind', async () => {
    let sent = 0;
    open = async function* () {
      for (; ; sent++) yield [Buffer.alloc(1_000_000)];
    };
    const stream = call(Buffer.alloc(0));
    await new Promise((resolve) => stream.once('readable', resolve));
    await eventually('the handler is held back', async () => {
      const before = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return sent === before;
    });
    const closed = server.close();
    const { error } = await read(stream);
    await closed;
    expect(error?.code).to.equal(grpc.status.UNAVAILABLE);
    expect(error?.metadata.get('grpc-status-details-bin').toString()).to.include('SHUTTING_DOWN');
  });

  it('leaves every other form of the method to Connect', async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}${PATH}`, {
      method: 'POST',
      headers: { 'content-type': 'application/connect+json' },
      body: Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]),
    });
    expect(await response.text()).to.include('{"seeks":"7"}');
  });
});
