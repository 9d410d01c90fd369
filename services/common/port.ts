// One TCP port for gRPC, gRPC-Web, Connect and plain HTTP.
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setInterval } from 'node:timers';
import { withBodyLimit } from './body-limit.ts';
import { PolarError } from './errors.ts';
import { readGreeting } from './greeting.ts';
import {
  HTTP_HEAD_MS,
  HTTP_IDLE_MS,
  HTTP_REQUEST_MS,
  HTTP_SILENT_MS,
  STOP_GRACE_MS,
  TRAJECTORY_READ_BYTES_MAX,
} from './limits.ts';
import { cutLost } from './lost-callers.ts';
import type { CertificateStore } from './tls/certificates.ts';
import { secureContext, tlsServerOptions } from './tls/server-options.ts';

/** What connectNodeAdapter returns: it takes a request of either HTTP version. */
export type Handler = (
  req: http.IncomingMessage | http2.Http2ServerRequest,
  res: http.ServerResponse | http2.Http2ServerResponse,
) => void;

export interface Port {
  /** Listen, and answer with the port taken. Throws INVALID_CONFIG where that cannot be. */
  listen(port: number, host?: string): Promise<number>;
  /** Listen on a Unix socket. What an earlier process has left at its path is removed. */
  listenAt(path: string): Promise<void>;
  /** Stop accepting, let calls in flight end, and after graceMs cut what is left. */
  close(graceMs?: number): Promise<void>;
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** A connection on which nothing moves is probed by the kernel after this, and ended ten unanswered seconds later. */
const PROBED_AFTER_MS = 10_000;

/** How often Node looks at the limits of requests. */
const CHECK_MS = 30_000;

/**
 * Of the answers of one HTTP/2 connection, all its streams together, what its peer has not taken; above, a further call on it
 * is refused with ENHANCE_YOUR_CALM, also one that acknowledges what waits there. Four of the largest batches, or hundreds of
 * usual ones: handlers write no more to a stream before what they wrote has gone, so that each holds one message at most.
 */
const UNREAD_BYTES_MAX = 4 * TRAJECTORY_READ_BYTES_MAX;
/** Node.js counts in megabytes, and lets 10 wait by itself: less than many a batch. */
const sessions = { maxSessionMemory: Math.ceil(UNREAD_BYTES_MAX / 1_000_000) };

/** Every time limit that Node sets by itself; what an answer takes is the handler's matter, be it an hour. */
const timesOf = (requestMs: number) => ({
  requestTimeout: requestMs,
  headersTimeout: Math.min(HTTP_HEAD_MS, requestMs),
  keepAliveTimeout: HTTP_IDLE_MS,
  connectionsCheckingInterval: Math.min(CHECK_MS, requestMs),
});

export interface PortOptions {
  readonly tls?: PortTls | undefined;
  /** Each connection begins with a line that says where it comes from, see greeting.ts. Not with TLS. */
  readonly greeted?: boolean;
  /** A request from its first byte to its last; then it is cut. Default HTTP_REQUEST_MS. */
  readonly requestMs?: number;
  /** Between two looks for callers whose machines are gone while something is on its way to them. Default: none is taken. */
  readonly lookMs?: number | undefined;
}

export interface PortTls {
  readonly store: CertificateStore;
  /** Takes the requests of connections without TLS. */
  readonly plain: Handler;
}

/** Serve on one port: by the first bytes without TLS, by ALPN with it. */
export function createPort(handler: Handler, options: PortOptions = {}): Port {
  const { tls, greeted = false, requestMs = HTTP_REQUEST_MS } = options;
  const times = timesOf(requestMs);
  const h1 = http.createServer(times, tls?.plain ?? handler);
  const h2 = http2.createServer(sessions, withBodyLimit(tls?.plain ?? handler, requestMs));
  const secure = tls && secureServer(withBodyLimit(handler, requestMs), tls.store, times);
  // A server of HTTP/1 listens: one that does not has no idle tracking and no header timeout.
  const listener: Server = secure?.server ?? h1;
  /** Of them those that no server has been given: they have said nothing, or less than tells the version. */
  const silent = new Set<Socket>();
  const [serveH1] = h1.listeners('connection') as [Serve];
  listener.removeAllListeners('connection');
  const sockets = connectionsOf(listener, options);
  const given = (socket: Socket, first: First): void => {
    silent.delete(socket);
    if (secure !== undefined && first === 'tls') {
      secure.serve(socket);
      return;
    }
    // Only to be refused; nothing else looks after it.
    if (secure !== undefined) socket.setTimeout(HTTP_SILENT_MS, () => socket.destroy());
    // HTTP/1 keeps what its peer has ended; HTTP/2 would not see that its peer is gone before it writes.
    if (first === 'h2') socket.allowHalfOpen = false;
    if (first === 'h2') h2.emit('connection', socket);
    else serveH1.call(h1, socket);
  };
  listener.on('connection', (socket: Socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
    const serve = (): void => sniff(socket, (first) => given(socket, first));
    if (greeted) readGreeting(socket, HTTP_SILENT_MS, serve);
    else serve();
  });

  return {
    async listen(port, host = '127.0.0.1') {
      listener.listen(port, host);
      await once(listener, 'listening').catch((error: Error) => {
        throw new PolarError('INVALID_CONFIG', `no port: ${error.message}`, { cause: error });
      });
      return (listener.address() as AddressInfo).port;
    },
    async listenAt(path) {
      rmSync(path, { force: true });
      listener.listen(path);
      await once(listener, 'listening');
    },
    async close(graceMs = STOP_GRACE_MS) {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of silent) socket.destroy();
      h2.close(); // Sends GOAWAY on each session; it is not listening itself.
      // A kept-alive HTTP/1 connection that was busy at close() is not closed when it turns idle; one of HTTP/2 whose peer
      // does not read on has told all, and would wait for the peer's end.
      const idle = setInterval(() => {
        (listener as http.Server).closeIdleConnections();
        for (const socket of sockets) if (socket.writableFinished) socket.destroy();
      }, 50);
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
    },
  };
}

/** While they are open. */
function connectionsOf(listener: Server, { lookMs }: PortOptions): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  listener.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.setKeepAlive(true, PROBED_AFTER_MS);
  });
  if (lookMs === undefined) return sockets;
  const looks = cutLost(sockets, lookMs);
  listener.once('close', () => looks[Symbol.dispose]());
  return sockets;
}

type Serve = (this: Server, socket: Socket) => void;

/** It takes new certificates with the first connection after they have changed. */
function secureServer(handler: Handler, store: CertificateStore, times: ReturnType<typeof timesOf>) {
  const options = {
    ...times,
    ...sessions,
    ...tlsServerOptions(store),
    handshakeTimeout: HTTP_SILENT_MS,
    allowHTTP1: true,
  };
  const server = http2.createSecureServer(options, handler);
  const [serve] = server.listeners('connection') as [Serve];
  let used = store.current;
  return {
    server,
    serve: (socket: Socket): void => {
      if (used !== store.current) {
        used = store.current;
        server.setSecureContext(secureContext(used));
      }
      serve.call(server, socket);
    },
  };
}

/** What a connection begins with. */
type First = 'h1' | 'h2' | 'tls';

const TLS_HANDSHAKE = 0x16;

/** Tell TLS, HTTP/2 with prior knowledge and HTTP/1 from each other by the first bytes, which are put back. */
function sniff(socket: Socket, route: (first: First) => void): void {
  const chunks: Buffer[] = [];
  const drop = (): void => void socket.destroy();
  const timer = setTimeout(drop, HTTP_SILENT_MS);
  // Left behind it would keep a process that ends.
  const stop = (): void => clearTimeout(timer);
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    chunks.push(chunk);
    const seen = Buffer.concat(chunks);
    const n = Math.min(seen.length, PREFACE.length);
    const isH2 = seen.subarray(0, n).equals(PREFACE.subarray(0, n));
    if (isH2 && n < PREFACE.length) return;
    stop();
    socket.off('readable', onReadable).off('error', drop).off('end', drop).off('close', stop);
    socket.unshift(seen);
    route(seen[0] === TLS_HANDSHAKE ? 'tls' : isH2 ? 'h2' : 'h1');
  };
  socket.on('readable', onReadable).on('error', drop).on('end', drop).once('close', stop);
}
