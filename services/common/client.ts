// Connect clients between services and for the CLI. What they throw is a PolarError.
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import {
  type CallOptions,
  type Client,
  createClient,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { fromConnectError } from './errors.ts';
import { RPC_BODY_BYTES_MAX, RPC_TIMEOUT_MS } from './limits.ts';

export interface ServiceClientOptions {
  readonly readMaxBytes?: number;
  /** Access token. */
  readonly token?: string | undefined;
}

/**
 * A client over one HTTP/2 connection. Leaving a stream needs its `signal` aborted: `break` does not cancel. Readers of trajectories
 * give TRAJECTORY_READ_BYTES_MAX.
 */
export function createServiceClient<T extends DescService>(
  service: T,
  baseUrl: string,
  { readMaxBytes = RPC_BODY_BYTES_MAX, token }: ServiceClientOptions = {},
): Client<T> {
  const sessionManager = new Http2SessionManager(baseUrl);
  const interceptors = sending(token);
  const options = { baseUrl, sessionManager, readMaxBytes, acceptCompression: [], interceptors };
  // A call that is no stream costs half of the CPU by Connect's own protocol, on either side.
  const { unary } = createConnectTransport({ ...options, httpVersion: '2', useBinaryFormat: true });
  const { stream } = createGrpcTransport(options);
  return typed(service, { unary, stream });
}

/**
 * A client over HTTP/1.1 with the Connect protocol, for one-off calls that leave no connection behind. A call that is
 * not a stream ends after RPC_TIMEOUT_MS, unless it is given another time.
 */
export function createPlainClient<T extends DescService>(
  service: T,
  baseUrl: string,
  token?: string,
): Client<T> {
  const transport = createConnectTransport({ baseUrl, httpVersion: '1.1', interceptors: sending(token) });
  return typed(service, transport, { timeoutMs: RPC_TIMEOUT_MS });
}

const sending = (token: string | undefined): Interceptor[] =>
  token === undefined
    ? []
    : [
        (next) => async (request) => {
          request.header.set('authorization', `Bearer ${token}`);
          return await next(request);
        },
      ];

type Method = (request: unknown, options?: CallOptions) => unknown;

/** Errors are mapped around the whole call: what an interceptor throws, Connect would wrap again. */
function typed<T extends DescService>(
  service: T,
  transport: Transport,
  unaryOptions?: CallOptions,
): Client<T> {
  const client = createClient(service, transport) as Record<string, Method>;
  const wrap = (method: DescMethod): [string, Method] => {
    const call = client[method.localName] as Method;
    if (method.methodKind === 'unary') {
      return [
        method.localName,
        (request, options) => unary(call(request, { ...unaryOptions, ...options }) as Promise<unknown>),
      ];
    }
    return [
      method.localName,
      (request, options) => streamed(call(request, options) as AsyncIterable<unknown>),
    ];
  };
  return Object.fromEntries(service.methods.map(wrap)) as Client<T>;
}

async function unary<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    throw fromConnectError(error);
  }
}

async function* streamed<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw fromConnectError(error);
  }
}
