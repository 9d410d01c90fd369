// One port: gRPC, gRPC-Web, Connect over HTTP/2 and HTTP/1.1, JSON by plain HTTP, health, readiness, typed errors.
import { once } from 'node:events';
import { constants, createServer, connect as http2Connect } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { create } from '@bufbuild/protobuf';
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { errorFromJson } from '@connectrpc/connect/protocol-connect';
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect } from 'chai';
import { ErrorInfoSchema } from '../../gen/ts/google/rpc/error_details_pb.js';
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/ts/grpc/health/v1/health_pb.js';
import {
  ListConsumersRequestSchema,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { fromConnectError, PolarError } from '../../services/common/errors.ts';
import { HTTP_IDLE_MS, STOP_GRACE_MS } from '../../services/common/limits.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { REQUEST_VALUES_MAX } from '../../services/common/values-limit.ts';

/** Flags and length. */
const ENVELOPE_HEAD_BYTES = 5;

describe('one port', () => {
  let server: RunningServer;
  let url: string;
  beforeEach(async () => {
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [TrajectoryService.typeName],
      routes: (router) =>
        router.service(TrajectoryService, {
          listConsumers: () => ({ consumers: [{ name: 'trainer' }] }),
          getTrajectory: ({ sessionId }) => {
            throw new PolarError('NOT_FOUND', `no session ${sessionId}`, {
              fields: [{ field: 'session_id', description: 'unknown' }],
            });
          },
          async *streamTrajectories(_, { signal }) {
            while (!signal.aborted) {
              yield {};
              await new Promise((resolve) => setTimeout(resolve, 5));
            }
          },
        }),
      http: (request, response) => {
        if (request.url !== '/plain') return false;
        response.end('plain');
        return true;
      },
    });
    url = `http://127.0.0.1:${server.port}`;
  });
  afterEach(() => server.close());

  it('answers whatever name a caller has for it', async () => {
    const answers = [];
    for (const host of ['Host: ::1:9581\r\n', 'Host: a b\r\n', 'Host: [\r\n', 'Host:\r\n']) {
      const path = `/${TrajectoryService.typeName}/ListConsumers`;
      const head = `POST ${path} HTTP/1.1\r\n${host}content-type: application/json\r\ncontent-length: 2\r\n`;
      const socket = connect(server.port, '127.0.0.1');
      socket.end(`${head}connection: close\r\n\r\n{}`);
      answers.push(String(Buffer.concat(await socket.toArray())).split('\r\n')[0]);
    }
    expect(new Set(answers)).to.eql(new Set(['HTTP/1.1 200 OK']));
    const session = http2Connect(url);
    const stream = session.request({
      ':path': `/${TrajectoryService.typeName}/ListConsumers`,
      ':method': 'POST',
      ':authority': '::1:9581',
      'content-type': 'application/json',
    });
    stream.end('{}');
    const [headers] = await once(stream, 'response');
    session.destroy();
    expect(headers[':status']).to.equal(200);
  });

  it('keeps a connection for longer than clients do', async () => {
    const answer = await fetch(`${url}/plain`);
    expect(answer.headers.get('keep-alive')).to.equal(`timeout=${HTTP_IDLE_MS / 1_000}`);
  });

  const transports: Record<string, () => Transport> = {
    grpc: () => createGrpcTransport({ baseUrl: url }),
    'grpc-web over HTTP/2': () => createGrpcWebTransport({ baseUrl: url, httpVersion: '2' }),
    'grpc-web over HTTP/1.1': () => createGrpcWebTransport({ baseUrl: url, httpVersion: '1.1' }),
    'connect over HTTP/2': () => createConnectTransport({ baseUrl: url, httpVersion: '2' }),
    'connect over HTTP/1.1': () => createConnectTransport({ baseUrl: url, httpVersion: '1.1' }),
  };
  for (const [name, transport] of Object.entries(transports)) {
    it(`serves ${name}`, async () => {
      const { consumers } = await createClient(TrajectoryService, transport()).listConsumers({});
      expect(consumers.map((consumer) => consumer.name)).to.deep.equal(['trainer']);
    });

    it(`serves ${name} to callers whose time is longer than timers are`, async () => {
      const header = new Headers({ 'grpc-timeout': '99999999H', 'connect-timeout-ms': '9999999999' });
      const calls = createClient(TrajectoryService, transport()).streamTrajectories({}, { headers: header });
      let messages = 0;
      for await (const _ of calls) if (++messages === 5) break;
      expect(messages).to.equal(5);
    });
  }

  it('serves JSON by plain HTTP', async () => {
    const response = await fetch(`${url}/${TrajectoryService.typeName}/ListConsumers`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(await response.json()).to.deep.equal({ consumers: [{ name: 'trainer' }] });
  });

  it('refuses JSON with a field that there is not, and names it', async () => {
    const ask = async (body: object) => {
      const headers = { 'content-type': 'application/json' };
      const path = `${url}/${TrajectoryService.typeName}/GetTrajectory`;
      const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
      const { code, message } = (await answer.json()) as { code: string; message: string };
      return [answer.status, code, message];
    };
    for (const [wrong, key] of [
      [{ sessionid: 'x' }, 'sessionid'],
      [{ sessionId: 'x', 'attempt ': 1 }, 'attempt '],
    ] as const) {
      const [status, code, message] = await ask(wrong);
      expect([status, code]).to.deep.equal([400, 'invalid_argument']);
      expect(message).to.contain(`key "${key}" is unknown`);
    }
    for (const right of [{ sessionId: 'x' }, { session_id: 'x' }])
      expect(await ask(right)).to.deep.equal([404, 'not_found', 'no session x']);
  });

  const unread = [
    ['with an unknown field', 'GetTrajectory', 'json', '{"sessionid": "x"}', ['sessionid']],
    ['with a field of another type', 'GetTrajectory', 'json', '{"sessionId": 1}', ['session_id']],
    ['that is no JSON', 'GetTrajectory', 'json', '{', []],
    ['that is cut', 'GetTrajectory', 'proto', '\xff', []],
    ['for a stream', 'StreamTrajectories', 'connect+json', '{"consumer": 1}', ['consumer']],
  ] as const;
  for (const [what, method, type, body, fields] of unread) {
    it(`says what is wrong with a request ${what}, with its reason`, async () => {
      const streams = method === 'StreamTrajectories';
      const bytes = Buffer.from(body, 'latin1');
      const answer = await fetch(`${url}/${TrajectoryService.typeName}/${method}`, {
        method: 'POST',
        headers: { 'content-type': `application/${type}` },
        body: streams ? Buffer.from(encodeEnvelope(0, bytes)) : bytes,
      });
      const text = Buffer.from(await answer.arrayBuffer()).subarray(streams ? ENVELOPE_HEAD_BYTES : 0);
      const told = JSON.parse(String(text));
      const error = errorFromJson(streams ? told.error : told, undefined, new ConnectError('no error'));
      expect([answer.status, error.code]).to.deep.equal([streams ? 200 : 400, Code.InvalidArgument]);
      const [info] = error.findDetails(ErrorInfoSchema);
      expect(info).to.deep.include({ reason: 'INVALID_REQUEST', metadata: { boundary: 'mesh' } });
      expect(fromConnectError(error).fields.map(({ field }) => field)).to.deep.equal(fields);
    });
  }

  for (const [name, transport] of Object.entries(transports)) {
    it(`says that a request that is cut cannot be read, with its reason, over ${name}`, async () => {
      const cut = create(ListConsumersRequestSchema);
      // Five bytes, of which none is there.
      cut.$unknown = [{ no: 15, wireType: 2, data: new Uint8Array([5]) }];
      const error = await createClient(TrajectoryService, transport())
        .listConsumers(cut)
        .then(() => expect.fail('it was taken'), ConnectError.from);
      expect(error.code).to.equal(Code.InvalidArgument);
      const [info] = error.findDetails(ErrorInfoSchema);
      expect(info).to.deep.include({ reason: 'INVALID_REQUEST', metadata: { boundary: 'mesh' } });
      expect(error.rawMessage).to.contain('parse binary: ');
    });
  }

  it('hands other HTTP requests to the service, and answers 404 to what nobody takes', async () => {
    expect(await (await fetch(`${url}/plain`)).text()).to.equal('plain');
    expect((await fetch(`${url}/nothing`)).status).to.equal(404);
  });

  it('refuses a request of too many values, however it comes, and takes a long one of few', async () => {
    const one = { no: 15, wireType: 0, data: new Uint8Array([1]) };
    const many = create(ListConsumersRequestSchema);
    many.$unknown = Array(REQUEST_VALUES_MAX + 1).fill(one);
    const long = create(ListConsumersRequestSchema);
    long.$unknown = [{ no: 15, wireType: 2, data: new BinaryWriter().bytes(Buffer.alloc(2 ** 20)).finish() }];
    const packed = { compressMinBytes: 0, sendCompression: compressionGzip };
    for (const transport of [
      createGrpcTransport({ baseUrl: url }),
      createGrpcTransport({ baseUrl: url, ...packed }),
      createGrpcWebTransport({ baseUrl: url, httpVersion: '1.1' }),
      createConnectTransport({ baseUrl: url, httpVersion: '2' }),
      createConnectTransport({ baseUrl: url, httpVersion: '1.1', ...packed }),
    ]) {
      const client = createClient(TrajectoryService, transport);
      const error = await client
        .listConsumers(many)
        .then(() => expect.fail('it was taken'), fromConnectError);
      expect(error.reason).to.equal('INVALID_REQUEST');
      expect(error.message).to.contain('REQUEST_VALUES_MAX (500000) values');
      expect((await client.listConsumers(long)).consumers).to.have.length(1);
    }
  });

  it('refuses JSON of too many values, packed or not', async () => {
    const text = `{"more": [${'1,'.repeat(REQUEST_VALUES_MAX)}1]}`;
    for (const [body, headers] of [
      [text, {}],
      [gzipSync(text), { 'content-encoding': 'gzip' }],
    ] as const) {
      const answer = await fetch(`${url}/${TrajectoryService.typeName}/ListConsumers`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      });
      expect(answer.status).to.equal(400);
      expect(await answer.text()).to.contain('INVALID_REQUEST');
    }
  });

  it('is alive at once and ready when it says so', async () => {
    const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
    expect((await fetch(`${url}/healthz`)).status).to.equal(200);
    expect((await fetch(`${url}/readyz`)).status).to.equal(503);
    expect((await health.check({})).status).to.equal(Status.NOT_SERVING);
    server.readiness.set(true);
    expect((await fetch(`${url}/readyz`)).status).to.equal(200);
    expect((await health.check({ service: TrajectoryService.typeName })).status).to.equal(Status.SERVING);
  });

  it('carries reason and fields of an error to the caller', async () => {
    const error = await createServiceClient(TrajectoryService, url)
      .getTrajectory({ sessionId: 'x' })
      .catch((reason) => reason);
    expect(error).to.be.instanceOf(PolarError);
    expect(error.reason).to.equal('NOT_FOUND');
    expect(error.message).to.equal('no session x');
    expect(error.fields).to.deep.equal([{ field: 'session_id', description: 'unknown' }]);
  });

  it('ends open streams with a typed error when it stops', async () => {
    const stream = createServiceClient(TrajectoryService, url).streamTrajectories({ consumer: 'a' });
    const { promise: open, resolve } = Promise.withResolvers<void>();
    const reading = (async () => {
      for await (const _ of stream) resolve();
    })().catch((reason) => reason);
    await open;
    await server.close();
    const error = await reading;
    expect(error === undefined || error.reason === 'SHUTTING_DOWN').to.equal(true);
  });

  it('does not wait at its stop for connections that have said nothing', async () => {
    const socket = connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    // The server has it too, once it has answered one that came after it.
    await fetch(`${url}/plain`);
    const closed = once(socket, 'close');
    const first = await Promise.race([
      server.close().then(() => 'stopped'),
      sleep(STOP_GRACE_MS / 2, 'waits'),
    ]);
    expect(first).to.equal('stopped');
    await closed;
  });

  it('is lost, and no broken invariant, to callers whose streams it refuses as it goes', async () => {
    const { NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR } = constants;
    for (const code of [NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR]) {
      const refusing = createServer().on('stream', (stream) => stream.on('error', () => {}).close(code));
      refusing.on('sessionError', () => {});
      await once(refusing.listen(0, '127.0.0.1'), 'listening');
      const { port } = refusing.address() as AddressInfo;
      const client = createServiceClient(TrajectoryService, `http://127.0.0.1:${port}`);
      const reasons: string[] = [];
      const reasonOf = (error: PolarError): void => void reasons.push(error.reason);
      await client.listConsumers({}).catch(reasonOf);
      const stream = client.streamTrajectories({ consumer: 'a' })[Symbol.asyncIterator]();
      await stream.next().catch(reasonOf);
      refusing.close();
      expect(reasons, String(code)).to.deep.equal(['NODE_LOST', 'NODE_LOST']);
    }
  });
});
