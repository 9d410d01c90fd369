// Calls whose messages are bytes, by the client of Connect's library on both versions of HTTP, by gRPC and by hand.
import { once } from 'node:events';
import * as http from 'node:http';
import { create, toBinary } from '@bufbuild/protobuf';
import { Code, type ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { expect } from 'chai';
import {
  type AckTrajectoriesRequest,
  AckTrajectoriesRequestSchema,
  AckTrajectoriesResponseSchema,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { BYTE_CALL_REQUEST_BYTES_MAX, type ByteCall } from '../../services/common/byte-call.ts';
import { fromConnectError, PolarError } from '../../services/common/errors.ts';
import { readRequest } from '../../services/common/request-faults.ts';
import { type RunningServer, startServer } from '../../services/common/server.ts';
import { eventually } from '../support/eventually.ts';

const PATH = `/${TrajectoryService.typeName}/AckTrajectories`;
const IDS = Array.from({ length: 4_000 }, (_, i) => BigInt(i));

const TRANSPORTS: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  'Connect over HTTP/1.1': (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: '1.1', useBinaryFormat: true }),
  'Connect over HTTP/2': (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: true }),
  gRPC: (baseUrl) => createGrpcTransport({ baseUrl }),
};

type Handler = (request: AckTrajectoriesRequest, signal: AbortSignal) => Promise<bigint>;

describe('byte calls', () => {
  let server: RunningServer;
  /** What the handler does; each test sets it. */
  let answer: Handler;
  /** Calls that came to the library in place of it. */
  let others: number;
  beforeEach(async () => {
    others = 0;
    const call: ByteCall = {
      path: PATH,
      async answer(bytes, signal) {
        const floor = await answer(readRequest(AckTrajectoriesRequestSchema, bytes), signal);
        return toBinary(AckTrajectoriesResponseSchema, create(AckTrajectoriesResponseSchema, { floor }));
      },
    };
    server = await startServer({
      host: '127.0.0.1',
      port: 0,
      services: [],
      routes: (router) =>
        router.service(TrajectoryService, {
          ackTrajectories: () => {
            others++;
            return { floor: 99n };
          },
        }),
      byteCalls: [call],
    });
  });
  afterEach(() => server.close());

  for (const [name, transportTo] of Object.entries(TRANSPORTS)) {
    describe(`by ${name}`, () => {
      const client = () => createClient(TrajectoryService, transportTo(`http://127.0.0.1:${server.port}`));

      it('are answered, many on the same connection', async () => {
        const api = client();
        answer = async ({ batchIds }) => BigInt(batchIds.length);
        for (const batchIds of [IDS, [], IDS.slice(0, 3)]) {
          const { floor } = await api.ackTrajectories({ consumer: 'c', batchIds });
          expect(floor).to.equal(BigInt(batchIds.length));
        }
        expect(others).to.equal(0);
      });

      it('fail with the typed error of the handler, and the next one does not', async () => {
        const api = client();
        answer = async () => {
          throw new PolarError('INVALID_REQUEST', 'fälschlich', {
            fields: [{ field: 'batch_ids', description: 'must be less' }],
          });
        };
        const thrown = (await api.ackTrajectories({}).catch((error: unknown) => error)) as ConnectError;
        expect(thrown.code).to.equal(Code.InvalidArgument);
        const error = fromConnectError(thrown);
        expect(error).to.include({ reason: 'INVALID_REQUEST' });
        expect(error.fields).to.deep.equal([{ field: 'batch_ids', description: 'must be less' }]);
        answer = async () => 1n;
        expect((await api.ackTrajectories({})).floor).to.equal(1n);
      });

      it('are refused by name when they are too large', async () => {
        answer = async () => 1n;
        const consumer = 'c'.repeat(BYTE_CALL_REQUEST_BYTES_MAX);
        const thrown = await client()
          .ackTrajectories({ consumer })
          .catch((error: unknown) => error);
        expect(fromConnectError(thrown)).to.include({ reason: 'INVALID_REQUEST' });
      });

      it('stop when the caller leaves, when its time is over, and when the server stops', async () => {
        const ended: unknown[] = [];
        answer = async (_, signal) => {
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
          ended.push(signal.reason);
          signal.throwIfAborted();
          return 0n;
        };
        const leaving = new AbortController();
        const left = client().ackTrajectories({}, { signal: leaving.signal });
        left.catch(() => {});
        setTimeout(() => leaving.abort(), 100);
        await eventually('the handler hears of it', () => ended.length === 1);
        expect(ended[0]).to.include({ reason: 'CANCELLED' });
        const late = await client()
          .ackTrajectories({}, { timeoutMs: 200 })
          .catch((error: unknown) => error);
        expect((late as ConnectError).code).to.equal(Code.DeadlineExceeded);
        await eventually('its handler ends, too', () => ended.length === 2);
        const stopped = client()
          .ackTrajectories({})
          .catch((error: unknown) => error);
        setTimeout(() => void server.close(), 200);
        expect(fromConnectError(await stopped)).to.include({ reason: 'SHUTTING_DOWN' });
        expect(ended).to.have.length(3);
      });
    });
  }

  const post = async (body: Buffer, headers: http.OutgoingHttpHeaders): Promise<[number, string]> => {
    const options = { host: '127.0.0.1', port: server.port, path: PATH, method: 'POST', headers };
    const sent = http.request(options).end(body);
    const [reply] = (await once(sent, 'response')) as [http.IncomingMessage];
    const told = (await reply.toArray()).map(String).join('');
    return [reply.statusCode ?? 0, told];
  };

  it('refuse what is no message, and leave every other form to the library', async () => {
    answer = async () => 1n;
    const [status, told] = await post(Buffer.from([0xff]), { 'content-type': 'application/proto' });
    expect(status).to.equal(400);
    expect(JSON.parse(told)).to.include({ code: 'invalid_argument' });
    const [ok, json] = await post(Buffer.from('{"consumer":"c"}'), { 'content-type': 'application/json' });
    expect([ok, JSON.parse(json)]).to.deep.equal([200, { floor: '99' }]);
    expect(others).to.equal(1);
  });
});
