// Connect refuses what it cannot read before any handler of ours, and names no reason. Here its refusal gets one.
import { Code, ConnectError } from '@connectrpc/connect';
import {
  createAsyncIterable,
  readAllBytes,
  type UniversalHandler,
  type UniversalServerResponse,
} from '@connectrpc/connect/protocol';
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { type FieldFault, PolarError, toConnectError } from './errors.ts';

/** An error as Connect writes it; ours are cut far below. */
const ERROR_BYTES_MAX = 1024 * 1024;
const OF_THE_CALLER: readonly Code[] = [Code.InvalidArgument, Code.ResourceExhausted];

/** The same handler, whose refusals over plain HTTP have a reason; those of streams pass our interceptors. */
export function withReasons(handler: UniversalHandler): UniversalHandler {
  return Object.assign(async (request: Parameters<UniversalHandler>[0]) => {
    const response = await handler(request);
    const isError = response.status >= 400 && response.body !== undefined;
    return isError ? await withReason(response) : response;
  }, handler);
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
