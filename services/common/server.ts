// One port: gRPC, gRPC-Web, Connect and plain HTTP, with health, readiness and reflection.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRouter, Interceptor } from '@connectrpc/connect';
import type { ConnectNodeAdapterOptions } from '@connectrpc/connect-node';
import type { AccessControl } from './access/access-control.ts';
import { type ByteCall, createByteCalls } from './byte-call.ts';
import { type ByteStream, createByteStreams } from './byte-stream.ts';
import { boundCallTime } from './call-time.ts';
import { connectHandler } from './connect-handler.ts';
import { PolarError, toConnectError } from './errors.ts';
import { Readiness } from './health.ts';
import { RPC_BODY_BYTES_MAX, STOP_GRACE_MS } from './limits.ts';
import { answerMetrics, METRICS_PATH } from './metrics-answer.ts';
import { createPort, type Handler, type Port } from './port.ts';
import { reflect, reflectionPath } from './reflection.ts';
import { refuseFaulty } from './request-faults.ts';
import { countRpcs } from './rpc-metrics.ts';
import { DEEP } from './stored.ts';
import type { CertificateStore } from './tls/certificates.ts';
import { refusals } from './tls/refusals.ts';
import { refusalOf } from './tls/server-options.ts';
import { reasoned } from './unread-request.ts';

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
  /** The same of methods with one message each way. */
  readonly byteCalls?: readonly ByteCall[];
  /** Plain HTTP requests that are neither RPCs nor health; true when it took the request. */
  readonly http?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Between two looks for callers whose machines are gone; undefined: the kernel takes a quarter of an hour. */
  readonly lookMs?: number;
  /** Path of a Unix socket that serves `http` and health, and no RPC; its connections begin with a greeting. */
  readonly httpSocket?: string;
  /** Undefined: without TLS. */
  readonly tls?: CertificateStore | undefined;
  /** The same on a port of 127.0.0.1, without TLS and greeting. */
  readonly httpPort?: number | undefined;
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
    throw reasoned(toConnectError(error));
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
    throw reasoned(toConnectError(error));
  }
}

/** Listen at once; `/readyz` and the health service say so only after `readiness.set(true)`. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const readiness = new Readiness(options.services);
  const stop = new AbortController();
  const fallback = plainHandler(options, readiness);
  const connect = connectHandler({
    routes(router) {
      options.routes(router);
      readiness.routes(router);
      reflect(router);
    },
    interceptors: [
      countRpcs,
      mapErrors,
      ...(options.access === undefined ? [] : [requireAccess(options.access)]),
      refuseFaulty,
    ],
    shutdownSignal: stop.signal,
    // What is too deep is told by its field, where there is a limit.
    binaryOptions: DEEP,
    // JSON is what people write: a misspelt field must not be taken for one that is left out.
    jsonOptions: { ...DEEP, ignoreUnknownFields: false },
    readMaxBytes: RPC_BODY_BYTES_MAX,
    // Compressing token batches costs 13 times the CPU and a twelfth of the speed.
    compressMinBytes: 2 ** 31 - 1,
    fallback,
  });
  const streams = createByteStreams(options.byteStreams ?? [], options.access, stop.signal);
  const calls = createByteCalls(options.byteCalls ?? [], options.access, stop.signal);
  const serve: Handler = (request, response) => {
    if (request.url === METRICS_PATH) {
      void answerMetrics(request as IncomingMessage, response as ServerResponse, options.access);
      return;
    }
    boundCallTime(request.headers);
    request.url = reflectionPath(request.url ?? '');
    if (!streams(request, response) && !calls(request, response)) connect(request, response);
  };
  const port = servicePort(serve, options);
  const listening = await port.listen(options.port, options.host);
  const plain = await plainPorts(fallback as Handler, options).catch(async (error: unknown) => {
    await port.close(0);
    throw error;
  });
  return {
    port: listening,
    readiness,
    async close() {
      readiness.set(false);
      stop.abort(toConnectError(new PolarError('SHUTTING_DOWN', 'the service is stopping; call again')));
      await Promise.all([port, ...plain].map((one) => one.close(STOP_GRACE_MS)));
    },
  };
}

/** With TLS, health is told to whoever comes by it. */
function servicePort(serve: Handler, { tls: store, routes, lookMs }: ServerOptions): Port {
  if (store === undefined) return createPort(serve, { lookMs });
  const refuse = refusals(store, routes);
  const handler: Handler = (request, response) => {
    const welcome = isHealth(request.url) || refusalOf(store, request.socket) === undefined;
    (welcome ? serve : refuse)(request, response);
  };
  return createPort(handler, { tls: { store, plain: refuse }, lookMs });
}

/** Where `http` and health are served, and no RPC. */
async function plainPorts(handler: Handler, { httpSocket, httpPort }: ServerOptions): Promise<Port[]> {
  const ports: Port[] = [];
  try {
    if (httpSocket !== undefined) {
      const port = createPort(handler, { greeted: true });
      await port.listenAt(httpSocket);
      ports.push(port);
    }
    if (httpPort !== undefined) {
      const port = createPort(handler);
      await port.listen(httpPort);
      ports.push(port);
    }
    return ports;
  } catch (error) {
    await Promise.all(ports.map((one) => one.close(0)));
    throw error;
  }
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

const isHealth = (url: string | undefined): boolean => url === '/healthz' || url === '/readyz';

function answerHealth(readiness: Readiness, url: string, response: ServerResponse): boolean {
  const ok = url === '/healthz' || (url === '/readyz' && readiness.ready);
  if (!ok && url !== '/readyz') return false;
  response.writeHead(ok ? 200 : 503, { 'content-type': 'text/plain' });
  const state = readiness.following && url === '/readyz' ? 'following' : 'ok';
  response.end(ok ? `${state}\n` : 'not ready\n');
  return true;
}
