// Calls with one message each way whose handlers take and give bytes. A trainer makes such a call with every step, and
// Connect's library would be most of what it costs. For the binary forms of gRPC and Connect; that library serves the same
// method in all others.
import type { ServerResponse } from 'node:http';
import { Code, ConnectError } from '@connectrpc/connect';
import type { AccessControl } from './access/access-control.ts';
import { type CallForm, callFormOf, type Request, type Response } from './byte-form.ts';
import { PolarError, toConnectError } from './errors.ts';
import { countCall } from './rpc-metrics.ts';

export interface ByteCall {
  /** `/<package>.<Service>/<Method>`. */
  readonly path: string;
  readonly answer: (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>;
}

/** Largest request; above: INVALID_REQUEST. */
export const BYTE_CALL_REQUEST_BYTES_MAX = 64 * 1024;

/** A handler that answers true when it took the request. */
export function createByteCalls(
  calls: readonly ByteCall[],
  access: AccessControl | undefined,
  shutdown: AbortSignal,
): (request: Request, response: Response) => boolean {
  const byPath = new Map(calls.map((call) => [call.path, call]));
  return (request, response) => {
    const call = byPath.get(request.url ?? '');
    if (call === undefined || request.method !== 'POST') return false;
    const form = callFormOf(request);
    if (form === undefined) return false;
    const answer = async (signal: AbortSignal): Promise<Uint8Array> => {
      access?.require(call.path, request.headers.authorization);
      return await call.answer(form.messageIn(await bodyOf(request, signal)), signal);
    };
    // HTTP/2 has Node's compatibility form, with what is used here.
    void serve({ call, form, answer, shutdown }, request, response as ServerResponse);
    return true;
  };
}

interface Served {
  readonly call: ByteCall;
  readonly form: CallForm;
  readonly answer: (signal: AbortSignal) => Promise<Uint8Array>;
  readonly shutdown: AbortSignal;
}

async function serve(
  { call, form, answer, shutdown }: Served,
  request: Request,
  response: ServerResponse,
): Promise<void> {
  const began = performance.now();
  const end = new AbortController();
  const leave = (): void => end.abort(new PolarError('CANCELLED', 'the caller left'));
  const stop = (): void => end.abort(shutdown.reason);
  // Combined signals cost more than all the rest of a small call.
  response.once('close', leave);
  shutdown.addEventListener('abort', stop, { once: true });
  let timer: NodeJS.Timeout | undefined;
  let message: Uint8Array | undefined;
  let error: ConnectError | undefined;
  try {
    const timeoutMs = form.timeoutMs(request);
    const late = (): void => end.abort(new ConnectError('the time given is over', Code.DeadlineExceeded));
    if (timeoutMs !== undefined) timer = setTimeout(late, timeoutMs);
    if (shutdown.aborted) stop();
    message = await answer(end.signal);
  } catch (thrown) {
    error = toConnectError(thrown);
  }
  clearTimeout(timer);
  shutdown.removeEventListener('abort', stop);
  response.off('close', leave);
  countCall(call.path.slice(1), error, performance.now() - began);
  if (!response.destroyed) form.end(response, message, error);
}

/** A caller that leaves before it has sent all aborts the signal. */
function bodyOf(request: Request, signal: AbortSignal): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    const chunks: Uint8Array[] = [];
    let size = 0;
    request.on('data', (chunk: Uint8Array) => {
      size += chunk.byteLength;
      if (size <= BYTE_CALL_REQUEST_BYTES_MAX) chunks.push(chunk);
      else reject(new PolarError('INVALID_REQUEST', 'the request is too large'));
    });
    request.once('end', () =>
      resolve(chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)),
    );
    request.once('error', reject);
  });
}
