// Connect's streams of bytes on both versions of HTTP, read by clients that share no code with the server.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import type { Readable } from 'node:stream';
import { expect } from 'chai';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { BYTE_STREAM_REQUEST_BYTES_MAX, type ByteStream } from '../../services/common/byte-stream.ts';
import { PolarError } from '../../services/common/errors.ts';
import { giveBack } from '../../services/common/memory.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { eventually } from '../support/eventually.ts';

const PATH = `/${TrajectoryService.typeName}/StreamTrajectories`;
const PREFIX_BYTES = 5;
const LAST = 2;

interface End {
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly details: readonly { readonly type: string; readonly value: string }[];
  };
}

interface Call {
  readonly body: Readable;
  /** As a caller that is killed: its connection ends. */
  readonly leave: () => void;
}

type Headers = Readonly<Record<string, string>>;

/** One message behind its length. */
function envelope(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

const CALLS: Readonly<Record<string, (port: number, request: Buffer, more: Headers) => Promise<Call>>> = {
  async 'HTTP/1.1'(port, request, more) {
    const headers = { 'content-type': 'application/connect+proto', ...more };
    const sent = http.request({ host: '127.0.0.1', port, path: PATH, method: 'POST', headers });
    sent.on('error', () => {});
    sent.end(request);
    const [body] = (await once(sent, 'response')) as [http.IncomingMessage];
    expect(body).to.include({ statusCode: 200 });
    expect(body.headers['content-type']).to.equal('application/connect+proto');
    return { body, leave: () => sent.socket?.end() };
  },
  async 'HTTP/2'(port, request, more) {
    const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {});
    const headers = { 'content-type': 'application/connect+proto', ...more };
    const body = session.request({ ':method': 'POST', ':path': PATH, ...headers });
    body.once('close', () => session.destroy());
    body.end(request);
    const [answer] = (await once(body, 'response')) as [http2.IncomingHttpHeaders];
    expect(answer).to.include({ ':status': 200, 'content-type': 'application/connect+proto' });
    return { body, leave: () => session.destroy() };
  },
};

async function read(body: Readable): Promise<{ readonly messages: Buffer[]; readonly end: End }> {
  const all = Buffer.concat((await body.toArray()) as Buffer[]);
  const messages: Buffer[] = [];
  for (let at = 0; at < all.length; ) {
    const size = all.readUInt32BE(at + 1);
    const message = all.subarray(at + PREFIX_BYTES, at + PREFIX_BYTES + size);
    if (all[at] === LAST) return { messages, end: JSON.parse(message.toString()) as End };
    messages.push(message);
    at += PREFIX_BYTES + size;
  }
  throw new Error('the body ends without saying so');
}

for (const [version, ask] of Object.entries(CALLS)) {
  describe(`byte stream by Connect over ${version}`, () => {
    let server: RunningServer;
    /** What the handler does; each test sets it. */
    let open: (
      request: Uint8Array,
      signal: AbortSignal,
    ) => AsyncIterable<readonly Uint8Array<ArrayBufferLike>[]>;
    let onWritten: (parts: readonly Uint8Array[]) => void;
    beforeEach(async () => {
      onWritten = () => {};
      const stream: ByteStream = {
        path: PATH,
        async *open(request, signal) {
          for await (const parts of open(request, signal)) {
            yield { parts, onWritten: () => onWritten(parts) };
          }
        },
      };
      server = await startServer({
        host: '127.0.0.1',
        port: 0,
        services: [],
        routes: () => {},
        byteStreams: [stream],
      });
    });
    afterEach(() => server.close());

    const call = (request = Buffer.alloc(0), more: Headers = {}): Promise<Call> =>
      ask(server.port, envelope(request), more);

    it('gives messages of any size as they are, and says when their memory may end', async () => {
      const sizes = [3, 200_000, 10, 15_000, 1_100_000, 70_000, 1];
      const sent: Buffer[] = [];
      let written = 0;
      open = async function* (request) {
        yield [request, Buffer.from('-'), request];
        yield [];
        for (let i = 0; i < 20; i++) {
          const parts = sizes.map((size) => Buffer.from(new Uint8Array(randomBytes(size)).buffer));
          sent.push(Buffer.concat(parts));
          yield parts;
        }
      };
      onWritten = (parts) => {
        written++;
        giveBack(parts);
      };
      const { messages, end } = await read((await call(Buffer.from('ask'))).body);
      expect(end).to.deep.equal({});
      expect(messages.splice(0, 2).map(String)).to.deep.equal(['ask-ask', '']);
      expect(messages.map((message, i) => message.equals(sent[i] as Buffer))).to.deep.equal(
        sent.map(() => true),
      );
      expect(written).to.equal(22);
    });

    it('ends with the typed error of the handler, before the first message or behind it', async () => {
      for (const before of [0, 2]) {
        open = async function* () {
          for (let i = 0; i < before; i++) yield [Buffer.from('m')];
          throw new PolarError('STREAM_REPLACED', 'ünterbrochen');
        };
        const { messages, end } = await read((await call()).body);
        expect(messages).to.have.length(before);
        expect(end.error).to.include({ code: 'aborted', message: 'ünterbrochen' });
        const [info] = end.error?.details ?? [];
        expect(info?.type).to.equal('google.rpc.ErrorInfo');
        expect(Buffer.from(info?.value ?? '', 'base64').toString()).to.include('STREAM_REPLACED');
      }
    });

    it('refuses a request that is too large, and one that is no message', async () => {
      open = async function* () {
        yield [];
      };
      for (const body of [envelope(Buffer.alloc(BYTE_STREAM_REQUEST_BYTES_MAX)), Buffer.from('no')]) {
        const { end } = await read((await ask(server.port, body, {})).body);
        expect(end.error?.code).to.equal('invalid_argument');
      }
    });

    it('stops the handler when the caller leaves, when its time is over, and when the server stops', async () => {
      const ended: unknown[] = [];
      open = async function* (_, signal) {
        yield [Buffer.from('m')];
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        ended.push(signal.reason);
        signal.throwIfAborted();
      };
      const left = await call();
      left.body.on('error', () => {});
      left.leave();
      await eventually('the handler hears of it', () => ended.length === 1);
      expect(ended[0]).to.include({ reason: 'CANCELLED' });
      const late = await read((await call(undefined, { 'connect-timeout-ms': '200' })).body);
      expect(late.end.error?.code).to.equal('deadline_exceeded');
      const stopped = await call();
      const closed = server.close();
      expect((await read(stopped.body)).end.error?.code).to.equal('unavailable');
      await closed;
      expect(ended).to.have.length(3);
    });

    it('holds the handler back while the caller does not read, and says why it ends all the same', async () => {
      let sent = 0;
      open = async function* () {
        for (; ; sent++) yield [Buffer.alloc(1_000_000)];
      };
      const { body } = await call();
      await eventually('the handler is held back', async () => {
        const before = sent;
        await new Promise((resolve) => setTimeout(resolve, 200));
        return sent === before;
      });
      const closed = server.close();
      const { messages, end } = await read(body);
      await closed;
      expect(messages.every(({ length }) => length === 1_000_000)).to.equal(true);
      expect(end.error?.code).to.equal('unavailable');
    });
  });
}
