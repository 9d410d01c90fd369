// Server streams whose messages are bytes already. Connect encodes a message and puts it behind its length, which moves
// every byte of a large one some six times; here the pieces of a message go to the socket as they lie in memory. For the
// binary forms of gRPC, and of Connect on either version of HTTP; Connect's library serves the same method in all others.
import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import type { AccessControl } from './access/access-control.ts';
import { type ByteForm, formOf, type Request, type Response } from './byte-form.ts';
import { chunkOf, messageBehindPrefix, prefixOf, together } from './byte-pieces.ts';
import { PolarError, toConnectError } from './errors.ts';
import { giveBack } from './memory.ts';
import { countCall } from './rpc-metrics.ts';

export interface ByteStream {
  /** `/<package>.<Service>/<Method>`. */
  readonly path: string;
  /** Largest request; default BYTE_STREAM_REQUEST_BYTES_MAX. */
  readonly requestBytesMax?: number;
  /** May throw before the first message or between two. */
  readonly open: (request: Uint8Array, signal: AbortSignal) => AsyncIterable<ByteMessage>;
}

/** A message as the pieces of its binary form. */
export interface ByteMessage {
  readonly parts: readonly Uint8Array[];
  /** Called when the pieces are with the kernel, and nobody looks at them any more; not where the caller leaves before. */
  readonly onWritten?: () => void;
}

/** Largest request of a stream whose messages are bytes; above: INVALID_REQUEST. */
export const BYTE_STREAM_REQUEST_BYTES_MAX = 64 * 1024;

/** A handler that answers true when it took the request. */
export function createByteStreams(
  streams: readonly ByteStream[],
  access: AccessControl | undefined,
  shutdown: AbortSignal,
): (request: Request, response: Response) => boolean {
  const byPath = new Map(streams.map((stream) => [stream.path, stream]));
  return (request, response) => {
    const stream = byPath.get(request.url ?? '');
    if (stream === undefined || request.method !== 'POST') return false;
    const form = formOf(request);
    if (form === undefined) return false;
    const allowed = (): void => access?.require(stream.path, request.headers.authorization);
    // HTTP/2 has Node's compatibility form, with what is used here.
    void serve({ stream, form, allowed, shutdown }, request, response as ServerResponse);
    return true;
  };
}

interface Call {
  readonly stream: ByteStream;
  readonly form: ByteForm;
  /** Throws where the caller may not. */
  readonly allowed: () => void;
  readonly shutdown: AbortSignal;
}

async function serve(
  { stream, form, allowed, shutdown }: Call,
  request: Request,
  response: ServerResponse,
): Promise<void> {
  const left = new AbortController();
  // Of HTTP/2, that form hides whether a write has come to its end.
  const body = 'stream' in response ? (response.stream as Writable) : response;
  body.once('close', () => left.abort(new PolarError('CANCELLED', 'the caller left')));
  let failure: unknown;
  try {
    const signal = limited(form, request, AbortSignal.any([left.signal, shutdown]));
    allowed();
    const message = await messageOf(request, stream.requestBytesMax ?? BYTE_STREAM_REQUEST_BYTES_MAX);
    response.writeHead(200, { 'content-type': form.type });
    const outlet = outletOf(response, body);
    for await (const one of stream.open(message, signal)) await write(outlet, one, signal);
  } catch (error) {
    failure = error;
  }
  const error = failure === undefined ? undefined : toConnectError(failure);
  countCall(stream.path.slice(1), error);
  if (body.destroyed) return;
  if (!response.headersSent) response.writeHead(200, { 'content-type': form.type });
  form.end(response, error);
}

function limited(form: ByteForm, request: Request, signal: AbortSignal): AbortSignal {
  const timeoutMs = form.timeoutMs(request);
  if (timeoutMs === undefined) return signal;
  const over = new AbortController();
  const late = (): void => over.abort(new ConnectError('the time given is over', Code.DeadlineExceeded));
  const timer = setTimeout(late, timeoutMs);
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  return AbortSignal.any([signal, over.signal]);
}

/** The one message of a request. */
async function messageOf(request: Request, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // What is not read to its end is not destroyed: HTTP/1 could not tell why.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > bytesMax) throw new PolarError('INVALID_REQUEST', 'the request is too large');
  }
  return messageBehindPrefix(Buffer.concat(chunks));
}

interface Outlet {
  readonly flow: Writable;
  /** A message's parts as they go there. */
  readonly framed: (parts: readonly Uint8Array[]) => readonly Uint8Array[];
}

/**
 * Node would make a chunk of each piece of a body over HTTP/1.1, which the reader puts together again by a copy: a message
 * is one chunk, written to the socket. An answer that waits behind another has none yet.
 */
function outletOf(response: ServerResponse, body: Writable): Outlet {
  const { socket } = response;
  if (!(response instanceof ServerResponse) || !response.chunkedEncoding || socket === null) {
    return { flow: body, framed: (parts) => parts };
  }
  response.flushHeaders();
  return { flow: socket, framed: chunkOf };
}

/** One write for all pieces; waits while the reader is behind. */
async function write(
  { flow, framed }: Outlet,
  { parts, onWritten }: ByteMessage,
  signal: AbortSignal,
): Promise<void> {
  const { pieces, own } = together(framed([prefixOf(parts), ...parts]));
  const written = (error?: Error | null): void => {
    // What a stream that breaks has not written may still be on its way; some of it is told without an error.
    if (error || flow.destroyed) return;
    giveBack(own);
    onWritten?.();
  };
  flow.cork();
  for (const [i, piece] of pieces.entries()) {
    if (i === pieces.length - 1) flow.write(piece, written);
    else flow.write(piece);
  }
  flow.uncork();
  if (!flow.writableNeedDrain) return;
  await once(flow, 'drain', { signal }).catch((error: unknown) => {
    // Its own error does not say why.
    signal.throwIfAborted();
    throw error;
  });
}
