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
import { giveBack } from './memory.ts';

export interface ByteStream {
  /** `/<package>.<Service>/<Method>`. */
  readonly path: string;
  /** May throw before the first message or between two. */
  readonly open: (request: Uint8Array, signal: AbortSignal) => AsyncIterable<ByteMessage>;
}

/** A message as the pieces of its binary form. */
export interface ByteMessage {
  readonly parts: readonly Uint8Array[];
  /** Called when the pieces are with the kernel, and nobody looks at them any more; not where the caller leaves before. */
  readonly onWritten?: () => void;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Largest request of a stream whose messages are bytes; above: INVALID_REQUEST. */
export const BYTE_STREAM_REQUEST_BYTES_MAX = 64 * 1024;
/** A message's flags (0: not compressed) and its length before it. */
const PREFIX_BYTES = 5;
/** A smaller piece goes out together with those beside it: moving it costs less than a write of its own. */
const PIECE_BYTES_MIN = 16 * 1024;
/** Of what goes out together: a block that the allocator has at hand. */
const JOINED_BYTES_MAX = 64 * 1024;
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
    for await (const message of open(body, signal)) await write(response.stream, message, signal);
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
  { parts, onWritten }: ByteMessage,
  signal: AbortSignal,
): Promise<void> {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(sizeOf(parts), 1);
  const { pieces, own } = joined([prefix, ...parts]);
  const written = (error?: Error | null): void => {
    // What a stream that breaks has not written may still be on its way; some of it is told without an error.
    if (error || stream.destroyed) return;
    giveBack(own);
    onWritten?.();
  };
  stream.cork();
  for (const [i, piece] of pieces.entries()) {
    if (i === pieces.length - 1) stream.write(piece, written);
    else stream.write(piece);
  }
  stream.uncork();
  if (!stream.writableNeedDrain) return;
  await once(stream, 'drain', { signal }).catch((error: unknown) => {
    // Its own error does not say why.
    signal.throwIfAborted();
    throw error;
  });
}

const sizeOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, one) => sum + one.byteLength, 0);

/** The same bytes in fewer pieces; `own` are those that were made here. */
function joined(parts: readonly Uint8Array[]): { readonly pieces: Uint8Array[]; readonly own: Uint8Array[] } {
  const pieces: Uint8Array[] = [];
  const own: Uint8Array[] = [];
  for (let i = 0; i < parts.length; ) {
    const start = i;
    let size = 0;
    for (let next = parts[i]; next !== undefined && next.byteLength < PIECE_BYTES_MIN; next = parts[++i]) {
      size += next.byteLength;
      if (size > JOINED_BYTES_MAX) break;
    }
    if (i > start) {
      const piece = concatenated(parts.slice(start, i));
      pieces.push(piece);
      own.push(piece);
    }
    if (i < parts.length) pieces.push(parts[i++] as Uint8Array);
  }
  return { pieces, own };
}

/** In memory of their own. */
function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const all = Buffer.allocUnsafeSlow(sizeOf(parts));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.byteLength;
  }
  return all;
}
