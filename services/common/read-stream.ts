// A server stream as its caller reads it: Connect in binary form, over HTTP/2. Connect's own client hands each message through
// a dozen iterators, which takes several times the CPU of all the rest.
import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type CallOptions, Code, ConnectError } from '@connectrpc/connect';
import { codeFromHttpStatus, endStreamFlag, endStreamFromJson } from '@connectrpc/connect/protocol-connect';
import type { Http2SessionManager } from '@connectrpc/connect-node';
import { Frames } from './byte-frames.ts';
import { prefixOf } from './byte-pieces.ts';
import { abortable } from './clock.ts';

export interface StreamPlace {
  readonly session: Http2SessionManager;
  /** Of every call. */
  readonly headers: OutgoingHttpHeaders;
  /** Of one message. */
  readonly readMaxBytes: number;
}

export interface StreamMethod<I extends DescMessage, O extends DescMessage> {
  /** `/<package>.<Service>/<Method>`. */
  readonly path: string;
  readonly input: I;
  readonly output: O;
}

const TYPE = 'application/connect+proto';

/** A call that was made. */
interface Called {
  readonly stream: ClientHttp2Stream;
  /** Empty until the answer begins. */
  head: IncomingHttpHeaders;
}

/**
 * The messages of a call, which is made at once; of the options `signal`, `timeoutMs` and `headers` count. Throws a
 * ConnectError: what the server said, or Unavailable where it cannot be reached or its answer breaks off.
 */
export function readStream<I extends DescMessage, O extends DescMessage>(
  { session, headers, readMaxBytes }: StreamPlace,
  { path, input, output }: StreamMethod<I, O>,
  request: MessageInitShape<I>,
  { signal, timeoutMs, headers: more }: CallOptions = {},
): AsyncGenerator<MessageShape<O>, void> {
  const limit = limitOf(signal, timeoutMs);
  const head: OutgoingHttpHeaders = { ...headers, 'content-type': TYPE, 'connect-protocol-version': '1' };
  if (timeoutMs !== undefined) head['connect-timeout-ms'] = `${timeoutMs}`;
  if (more !== undefined) for (const [name, value] of new Headers(more)) head[name] = value;
  const message = toBinary(input, create(input, request));
  const frame = Buffer.concat([prefixOf([message]), message]);
  const calling = call(session, path, head, frame, limit);
  // Who reads the messages is told.
  calling.catch(() => {});
  return messagesOf(calling, output, readMaxBytes, limit);
}

async function call(
  session: Http2SessionManager,
  path: string,
  head: OutgoingHttpHeaders,
  frame: Buffer,
  limit: AbortSignal | undefined,
): Promise<Called> {
  const stream = await within(limit, opened(session, path, head));
  const called: Called = { stream, head: {} };
  stream.once('response', (headers) => {
    called.head = headers;
  });
  const leave = (): void => cancel(stream);
  limit?.addEventListener('abort', leave, { once: true });
  stream.once('close', () => limit?.removeEventListener('abort', leave));
  if (limit?.aborted) leave();
  else stream.end(frame);
  return called;
}

/** A connection may take for ever to be made, as where its other end stands still. */
async function within(
  limit: AbortSignal | undefined,
  opening: Promise<ClientHttp2Stream>,
): Promise<ClientHttp2Stream> {
  if (limit === undefined) return await opening;
  try {
    return await abortable(opening, limit);
  } catch (error) {
    if (!limit.aborted) throw error;
    opening.then(cancel, () => {});
    throw whyLeft(limit);
  }
}

function cancel(stream: ClientHttp2Stream): void {
  if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
}

async function* messagesOf<O extends DescMessage>(
  calling: Promise<Called>,
  output: O,
  bytesMax: number,
  limit: AbortSignal | undefined,
): AsyncGenerator<MessageShape<O>, void> {
  const called = await calling;
  try {
    for await (const bytes of bytesOf(called, bytesMax)) yield fromBinary(output, bytes);
  } catch (error) {
    throw limit?.aborted ? whyLeft(limit) : error;
  } finally {
    cancel(called.stream);
  }
}

function limitOf(signal: AbortSignal | undefined, timeoutMs: number | undefined): AbortSignal | undefined {
  if (timeoutMs === undefined) return signal;
  return AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]);
}

function whyLeft({ reason }: AbortSignal): ConnectError {
  const isLate = reason instanceof DOMException && reason.name === 'TimeoutError';
  return failed(reason, isLate ? Code.DeadlineExceeded : Code.Canceled);
}

async function opened(
  session: Http2SessionManager,
  path: string,
  head: OutgoingHttpHeaders,
): Promise<ClientHttp2Stream> {
  try {
    const stream = await session.request('POST', path, head, {});
    // One that breaks is told to who reads it.
    stream.on('error', () => {});
    return stream;
  } catch (error) {
    throw brokenOff(error);
  }
}

/** Read to its end: one that is left before is reset, and a server cuts a connection on which that happens often. */
async function* bytesOf(called: Called, bytesMax: number): AsyncGenerator<Uint8Array, void> {
  const frames = new Frames(bytesMax);
  let end: Uint8Array | undefined;
  try {
    for await (const chunk of called.stream as AsyncIterable<Uint8Array>) {
      checkHead(called.head);
      for (const { flags, bytes } of frames.push(chunk)) {
        if (flags === endStreamFlag) end = bytes;
        else yield bytes;
      }
    }
  } catch (error) {
    throw brokenOff(error);
  }
  checkHead(called.head);
  if (end === undefined) throw brokenOff(new Error('the answer has no end'));
  checkEnd(end, called.head);
}

/** Throws where the answer is none of this protocol. */
function checkHead({
  ':status': status,
  'content-type': type,
}: IncomingHttpHeaders & { ':status'?: number }): void {
  // No answer at all.
  if (status === undefined) return;
  if (status !== 200) throw new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
  if (type !== TYPE) throw new ConnectError(`unsupported content type ${type}`, Code.Internal);
}

const WELL = Buffer.from('{}');

/** Throws what the server said at the end. */
function checkEnd(end: Uint8Array, head: IncomingHttpHeaders): void {
  if (WELL.equals(end)) return;
  const { error } = endStreamFromJson(end);
  if (error === undefined) return;
  error.metadata.set('content-type', head['content-type'] ?? '');
  throw error;
}

const brokenOff = (error: unknown): ConnectError => failed(error, Code.Unavailable);

function failed(error: unknown, code: Code): ConnectError {
  if (error instanceof ConnectError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ConnectError(message, code, undefined, undefined, error);
}
