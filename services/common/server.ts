// One port: gRPC, gRPC-Web, Connect and plain HTTP, with health and readiness.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRouter, Interceptor } from '@connectrpc/connect';
import { type ConnectNodeAdapterOptions, connectNodeAdapter } from '@connectrpc/connect-node';
import type { AccessControl } from './access/access-control.ts';
import { type ByteStream, createByteStreams } from './byte-stream.ts';
import { PolarError, toConnectError } from './errors.ts';
import { Readiness } from './health.ts';
import { RPC_BODY_BYTES_MAX, STOP_GRACE_MS } from './limits.ts';
import { createPort, type Handler } from './port.ts';

export interface ServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Full names of the services that `routes` adds. */
  readonly services: readonly string[];
  readonly routes: (router: ConnectRouter) => void;
  /** Who may call; undefined: everybody. */
  readonly access?: AccessControl | undefined;
  /** Methods of these services whose messages go out as they lie in memory, by gRPC and by Connect in binary form. */
  readonly byteStreams?: readonly ByteStream[];
  /** Plain HTTP requests that are neither RPCs nor health; true when it took the request. */
  readonly http?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Path of a Unix socket that serves `http` and health, and no RPC; its connections begin with a greeting. */
  readonly httpSocket?: string;
}

export interface RunningServer {
  readonly port: number;
  readonly readiness: Readiness;
  /** Unready, then no new calls, then wait for those in flight. */
  close(): Promise<void>;
}

const mapErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: mapped(response.message) } : response;
  } catch (error) {
    throw toConnectError(error);
  }
};

const requireAccess =
  (access: AccessControl): Interceptor =>
  (next) =>
  async (request) => {
    access.require(new URL(request.url).pathname, request.header.get('authorization'));
    return await next(request);
  };

async function* mapped<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw toConnectError(error);
  }
}

/** Listen at once; `/readyz` and the health service say so only after `readiness.set(true)`. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const readiness = new Readiness(options.services);
  const stop = new AbortController();
  const fallback = plainHandler(options, readiness);
  const connect = connectNodeAdapter({
    routes(router) {
      options.routes(router);
      readiness.routes(router);
    },
    interceptors: options.access === undefined ? [mapErrors] : [mapErrors, requireAccess(options.access)],
    shutdownSignal: stop.signal,
    readMaxBytes: RPC_BODY_BYTES_MAX,
    // Compressing token batches costs 13 times the CPU and a twelfth of the speed.
    compressMinBytes: 2 ** 31 - 1,
    fallback,
  });
  const bytes = createByteStreams(options.byteStreams ?? [], options.access, stop.signal);
  const port = createPort((request, response) => {
    if (!bytes(request, response)) connect(request, response);
  });
  const listening = await port.listen(options.port, options.host);
  const plain =
    options.httpSocket === undefined ? undefined : createPort(fallback as Handler, { greeted: true });
  if (options.httpSocket !== undefined) await plain?.listenAt(options.httpSocket);
  return {
    port: listening,
    readiness,
    async close() {
      readiness.set(false);
      stop.abort(toConnectError(new PolarError('SHUTTING_DOWN', 'the service is stopping; call again')));
      await Promise.all([port.close(STOP_GRACE_MS), plain?.close(STOP_GRACE_MS)]);
    },
  };
}

/** Everything but RPCs. HTTP/2 requests come in Node's compatibility form, which has what is used here. */
function plainHandler(
  { http }: ServerOptions,
  readiness: Readiness,
): NonNullable<ConnectNodeAdapterOptions['fallback']> {
  return (nodeRequest, nodeResponse) => {
    const request = nodeRequest as IncomingMessage;
    const response = nodeResponse as unknown as ServerResponse;
    if (answerHealth(readiness, request.url ?? '', response)) return;
    if (http?.(request, response) === true) return;
    response.writeHead(404);
    response.end();
  };
}

function answerHealth(readiness: Readiness, url: string, response: ServerResponse): boolean {
  const ok = url === '/healthz' || (url === '/readyz' && readiness.ready);
  if (!ok && url !== '/readyz') return false;
  response.writeHead(ok ? 200 : 503, { 'content-type': 'text/plain' });
  const state = readiness.following && url === '/readyz' ? 'following' : 'ok';
  response.end(ok ? `${state}\n` : 'not ready\n');
  return true;
}
