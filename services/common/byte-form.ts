// What gRPC and Connect differ in, where a server stream's messages are bytes already: where a call says its time, and how
// it says how it ended.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { ConnectError } from '@connectrpc/connect';
import {
  endStreamFlag,
  endStreamToJson,
  parseTimeout as parseConnectTimeout,
} from '@connectrpc/connect/protocol-connect';
import { parseTimeout as parseGrpcTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { prefixOf } from './byte-pieces.ts';
import { CALL_TIME_MS_MAX } from './call-time.ts';

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

export interface ByteForm {
  /** One answer looks as the first of several does. */
  readonly isAlike: boolean;
  /** Content type of the answer. */
  readonly type: string;
  /** The time that the caller gives; undefined: no limit. Throws for what is no time. */
  readonly timeoutMs: (request: Request) => number | undefined;
  /** Ends the answer; its head was sent. */
  readonly end: (response: Response, error: ConnectError | undefined) => void;
}

const GRPC = /^application\/grpc(\+proto)?(;|$)/;
const CONNECT = /^application\/connect\+proto(;|$)/;

const timeoutIn = (request: Request, header: string, parse: typeof parseGrpcTimeout): number | undefined => {
  const { timeoutMs, error } = parse(request.headers[header]?.toString() ?? null, CALL_TIME_MS_MAX);
  if (error !== undefined) throw error;
  return timeoutMs;
};

const grpc: ByteForm = {
  isAlike: true,
  type: 'application/grpc+proto',
  timeoutMs: (request) => timeoutIn(request, 'grpc-timeout', parseGrpcTimeout),
  end(response, error) {
    response.addTrailers(Object.fromEntries(setTrailerStatus(new Headers(), error)));
    response.end();
  },
};

const connect: ByteForm = {
  isAlike: false,
  type: 'application/connect+proto',
  timeoutMs: (request) => timeoutIn(request, 'connect-timeout-ms', parseConnectTimeout),
  end(response, error) {
    const last = Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined)));
    response.end(Buffer.concat([prefixOf([last], endStreamFlag), last]));
  },
};

/** That of a call; undefined for those that are Connect's own matter. gRPC needs the trailers of HTTP/2. */
export function formOf(request: Request): ByteForm | undefined {
  const { headers } = request;
  const encoding = headers['grpc-encoding'] ?? headers['connect-content-encoding'] ?? 'identity';
  const type = headers['content-type'] ?? '';
  if (encoding !== 'identity') return undefined;
  if (GRPC.test(type)) return 'stream' in request ? grpc : undefined;
  return CONNECT.test(type) ? connect : undefined;
}
