// gRPC server streams whose messages are bytes already. Connect encodes a message and puts it behind its length, which
// moves every byte of a large one some six times; here the pieces of a message go to the socket as they lie in memory.
// Only for gRPC's own binary form; Connect serves the same method in all others.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { parseTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { AccessControl } from './access/access-control.ts';
import { PolarError, toConnectError } from './errors.ts';

export interface ByteStream {
  /** `/<package>.<Service>/<Method>`. */
  readonly path: string;
  /** Each message as the pieces of its binary form. May throw before the first one or between two. */
  readonly open: (request: Uint8Array, signal: AbortSignal) => AsyncIterable<readonly Uint8Array[]>;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Largest request of a stream whose messages are bytes; above: INVALID_REQUEST. */
export const BYTE_STREAM_REQUEST_BYTES_MAX = 64 * 1024;
/** A message's flags (0: not compressed) and its length before it. */
const PREFIX_BYTES = 5;
const BINARY = /^application\/grpc(\+proto)?(;|$)/;

/** A handler that answers true when it took the request. */
export function createByteStreams(
  streams: readonly ByteStream[],
  access: AccessControl | undefined,
  shutdown: AbortSignal,
): (request: Request, response: Response) => boolean {
  const byPath = new Map(streams.map((stream) => [stream.path, stream]));
  return (request, response) => {
    const stream = byPath.get(request.url ?? '');
    if (stream === undefined || !('stream' in request) || request.method !== 'POST') return false;
    const { 'content-type': type = '', 'grpc-encoding': encoding = 'identity' } = request.headers;
    if (!BINARY.test(type) || encoding !== 'identity') return false;
    const allowed = (): void => access?.require(stream.path, request.headers.authorization);
    void serve(stream, allowed, shutdown, request, response as Http2ServerResponse);
    return true;
  };
}

async function serve(
  { open }: ByteStream,
  allowed: () => void,
  shutdown: AbortSignal,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const left = new AbortController();
  response.stream.once('close', () => left.abort(new PolarError('CANCELLED', 'the caller left')));
  let failure: unknown;
  try {
    const signal = limited(request, AbortSignal.any([left.signal, shutdown]));
    allowed();
    const body = await messageOf(request);
    response.writeHead(200, { 'content-type': 'application/grpc+proto' });
    for await (const parts of open(body, signal)) await write(response.stream, parts, signal);
  } catch (error) {
    failure = error;
  }
  if (response.stream.destroyed) return;
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/grpc+proto' });
  const status = setTrailerStatus(new Headers(), failure === undefined ? undefined : toConnectError(failure));
  response.addTrailers(Object.fromEntries(status));
  response.end();
}

function limited(request: Http2ServerRequest, signal: AbortSignal): AbortSignal {
  const { timeoutMs, error } = parseTimeout(request.headers['grpc-timeout']?.toString() ?? null, 2 ** 31 - 1);
  if (error !== undefined) throw error;
  if (timeoutMs === undefined) return signal;
  const over = new AbortController();
  const late = (): void => over.abort(new ConnectError('the time given is over', Code.DeadlineExceeded));
  const timer = setTimeout(late, timeoutMs);
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  return AbortSignal.any([signal, over.signal]);
}

/** The one message of a request. */
async function messageOf(request: Http2ServerRequest): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > BYTE_STREAM_REQUEST_BYTES_MAX) throw unreadable('is too large');
  }
  const body = Buffer.concat(chunks);
  if (size < PREFIX_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== size - PREFIX_BYTES) {
    throw unreadable('is not one message without compression');
  }
  return body.subarray(PREFIX_BYTES);
}

const unreadable = (why: string): PolarError => new PolarError('INVALID_REQUEST', `the request ${why}`);

/** One write for all pieces; waits while the reader is behind. */
async function write(
  stream: ServerHttp2Stream,
  parts: readonly Uint8Array[],
  signal: AbortSignal,
): Promise<void> {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.byteLength, 0),
    1,
  );
  stream.cork();
  stream.write(prefix);
  for (const part of parts) stream.write(part);
  stream.uncork();
  if (!stream.writableNeedDrain) return;
  await once(stream, 'drain', { signal }).catch((error: unknown) => {
    // Its own error does not say why.
    signal.throwIfAborted();
    throw error;
  });
}
