// What gRPC and Connect differ in, where messages are bytes already: where a call says its time, how a message stands in
// its body, and how it says how it ended.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { ConnectError } from '@connectrpc/connect';
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
  parseTimeout as parseConnectTimeout,
} from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { messageBehindPrefix, prefixOf } from './byte-pieces.ts';
import { CALL_TIME_MS_MAX } from './call-time.ts';

/** Of either version of HTTP. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** Of a stream. */
export interface ByteForm {
  /** Content type of the answer. */
  readonly type: string;
  /** The time that the caller gives; undefined: no limit. Throws for what is no time. */
  readonly timeoutMs: (request: Request) => number | undefined;
  /** Ends the answer; its head was sent. */
  readonly end: (response: Response, error: ConnectError | undefined) => void;
}

const GRPC = /^application\/grpc(\+proto)?(;|$)/;
const CONNECT = /^application\/connect\+proto(;|$)/;
const CONNECT_CALL = /^application\/proto(;|$)/;

const timeoutIn = (request: Request, header: string, parse: typeof parseGrpcTimeout): number | undefined => {
  const { timeoutMs, error } = parse(request.headers[header]?.toString() ?? null, CALL_TIME_MS_MAX);
  if (error !== undefined) throw error;
  return timeoutMs;
};

const grpc: ByteForm = {
  type: 'application/grpc+proto',
  timeoutMs: (request) => timeoutIn(request, 'grpc-timeout', parseGrpcTimeout),
  end(response, error) {
    response.addTrailers(Object.fromEntries(setTrailerStatus(new Headers(), error)));
    response.end();
  },
};

const connect: ByteForm = {
  type: 'application/connect+proto',
  timeoutMs: (request) => timeoutIn(request, 'connect-timeout-ms', parseConnectTimeout),
  end(response, error) {
    const last = Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined)));
    response.end(Buffer.concat([prefixOf([last], endStreamFlag), last]));
  },
};

/** Of a call with one message each way. */
export interface CallForm {
  readonly timeoutMs: ByteForm['timeoutMs'];
  /** The message of a request's body. Throws INVALID_REQUEST. */
  readonly messageIn: (body: Uint8Array) => Uint8Array;
  /** The whole answer; without a message, it is the error. */
  readonly end: (
    response: ServerResponse,
    message: Uint8Array | undefined,
    error: ConnectError | undefined,
  ) => void;
}

const grpcCall: CallForm = {
  timeoutMs: grpc.timeoutMs,
  messageIn: messageBehindPrefix,
  end(response, message, error) {
    response.writeHead(200, { 'content-type': grpc.type });
    if (message !== undefined) response.write(Buffer.concat([prefixOf([message]), message]));
    grpc.end(response, error);
  },
};

const connectCall: CallForm = {
  timeoutMs: connect.timeoutMs,
  messageIn: (body) => body,
  end(response, message, error) {
    const status = error === undefined ? 200 : codeToHttpStatus(error.code);
    const body = error === undefined ? (message as Uint8Array) : errorToJsonBytes(error, undefined);
    const type = error === undefined ? 'application/proto' : 'application/json';
    response.writeHead(status, { 'content-type': type, 'content-length': body.byteLength });
    response.end(body);
  },
};

const isPlain = ({ headers }: Request, encoding: string): boolean =>
  (headers[encoding] ?? 'identity') === 'identity';

const isGrpc = (request: Request): boolean => GRPC.test(request.headers['content-type'] ?? '');

/** That of a stream; undefined for those that are Connect's own matter. gRPC needs the trailers of HTTP/2. */
export function formOf(request: Request): ByteForm | undefined {
  if (isGrpc(request)) return 'stream' in request && isPlain(request, 'grpc-encoding') ? grpc : undefined;
  const isConnect = CONNECT.test(request.headers['content-type'] ?? '');
  return isConnect && isPlain(request, 'connect-content-encoding') ? connect : undefined;
}

/** The same of a call with one message each way. */
export function callFormOf(request: Request): CallForm | undefined {
  if (isGrpc(request)) return 'stream' in request && isPlain(request, 'grpc-encoding') ? grpcCall : undefined;
  const isConnect = CONNECT_CALL.test(request.headers['content-type'] ?? '');
  return isConnect && isPlain(request, 'content-encoding') ? connectCall : undefined;
}
