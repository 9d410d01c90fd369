// Connect refuses what it cannot read before any handler of ours, and names no reason. Here its refusal gets one.
import { Code, ConnectError } from '@connectrpc/connect';
import {
  createAsyncIterable,
  encodeEnvelope,
  readAllBytes,
  type UniversalHandler,
  type UniversalServerResponse,
} from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { findTrailerError, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerParse, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { PREFIX_BYTES } from './byte-pieces.ts';
import { type FieldFault, PolarError, toConnectError } from './errors.ts';

/** An error as Connect writes it; ours are cut far below. */
const ERROR_BYTES_MAX = 1024 * 1024;
const OF_THE_CALLER: readonly Code[] = [Code.InvalidArgument, Code.ResourceExhausted];

/** The same handler, whose refusals of single requests have a reason; those of streams pass our interceptors. */
export function withReasons(handler: UniversalHandler): UniversalHandler {
  if (handler.method.methodKind !== 'unary') return handler;
  return Object.assign(async (request: Parameters<UniversalHandler>[0]) => {
    const response = await handler(request);
    const { status, header, trailer, body } = response;
    if (status >= 400 && body !== undefined) return await withReason(response);
    // Of a refusal, it is there with the response.
    if (trailer !== undefined) giveReason(trailer);
    const isWeb = header?.get('content-type')?.startsWith('application/grpc-web') === true;
    return isWeb && body !== undefined ? await withReasonInBody(response) : response;
  }, handler);
}

/** Whether the trailer has an error that is another one now. */
function giveReason(trailer: Headers): boolean {
  const told = findTrailerError(trailer);
  const error = told && reasoned(told);
  if (error === undefined || error === told) return false;
  setTrailerStatus(trailer, error);
  return true;
}

/** gRPC-Web has its trailer as the last message of the body; each is one chunk, and all are made by then. */
async function withReasonInBody(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) chunks.push(chunk);
  const last = chunks.at(-1);
  if (last?.[0] === trailerFlag) {
    const trailer = trailerParse(last.subarray(PREFIX_BYTES));
    if (giveReason(trailer)) chunks.splice(-1, 1, encodeEnvelope(trailerFlag, trailerSerialize(trailer)));
  }
  return { ...response, body: createAsyncIterable(chunks) };
}

async function withReason(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const body = await readAllBytes(response.body as AsyncIterable<Uint8Array>, ERROR_BYTES_MAX);
  const told = errorFromJsonBytes(body, undefined, new ConnectError('no error', Code.Unknown));
  const error = reasoned(told);
  if (error === told) return { ...response, body: createAsyncIterable([body]) };
  const bytes = errorToJsonBytes(error, undefined);
  const header = new Headers(response.header);
  header.set('content-length', String(bytes.byteLength));
  return { ...response, status: codeToHttpStatus(error.code), header, body: createAsyncIterable([bytes]) };
}

/** The error as INVALID_REQUEST where it is Connect's own and the request is to blame. */
export function reasoned(error: ConnectError): ConnectError {
  const { code, details, rawMessage } = error;
  const isUnread = OF_THE_CALLER.includes(code) || rawMessage.startsWith('parse binary: ');
  if (details.length > 0 || !isUnread) return error;
  return toConnectError(new PolarError('INVALID_REQUEST', rawMessage, { fields: fieldsIn(rawMessage) }));
}

/** What the JSON reader says of a field. */
function fieldsIn(message: string): FieldFault[] {
  const [, wrong] = /^cannot decode field \S+\.(\w+) from JSON: /.exec(message) ?? [];
  const [, unknown] = / from JSON: key "(.*)" is unknown$/s.exec(message) ?? [];
  const field = wrong ?? unknown;
  return field === undefined ? [] : [{ field, description: message }];
}
