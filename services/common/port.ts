// One TCP port for gRPC, gRPC-Web, Connect and plain HTTP.
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setInterval } from 'node:timers';
import { readGreeting } from './greeting.ts';
import { HTTP_HEAD_MS, HTTP_IDLE_MS, HTTP_REQUEST_MS, HTTP_SILENT_MS, STOP_GRACE_MS } from './limits.ts';

/** What connectNodeAdapter returns: it takes a request of either HTTP version. */
export type Handler = (
  req: http.IncomingMessage | http2.Http2ServerRequest,
  res: http.ServerResponse | http2.Http2ServerResponse,
) => void;

export interface Port {
  /** Listen, and answer with the port taken. */
  listen(port: number, host?: string): Promise<number>;
  /** Listen on a Unix socket. What an earlier process has left at its path is removed. */
  listenAt(path: string): Promise<void>;
  /** Stop accepting, let calls in flight end, and after graceMs cut what is left. */
  close(graceMs?: number): Promise<void>;
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Every time limit that Node sets by itself; what an answer takes is the handler's matter, be it an hour. */
const TIMES = {
  requestTimeout: HTTP_REQUEST_MS,
  headersTimeout: HTTP_HEAD_MS,
  keepAliveTimeout: HTTP_IDLE_MS,
};

export interface PortOptions {
  readonly tls?: http2.SecureServerOptions;
  /** Each connection begins with a line that says where it comes from, see greeting.ts. Not with TLS. */
  readonly greeted?: boolean;
}

/** Serve on one port: by preface without TLS, by ALPN with it. */
export function createPort(handler: Handler, { tls, greeted = false }: PortOptions = {}): Port {
  const h1 = tls === undefined ? http.createServer(TIMES, handler) : undefined;
  const h2 =
    tls === undefined
      ? http2.createServer(handler)
      : http2.createSecureServer({ ...TIMES, ...tls, allowHTTP1: true }, handler);
  // The HTTP/1 server listens: one that does not has no idle tracking and no header timeout.
  const listener = (h1 ?? h2) as Server;
  const sockets = new Set<Socket>();
  /** Of them those that neither server has been given: they have said nothing, or less than tells the version. */
  const silent = new Set<Socket>();
  if (h1 !== undefined) {
    const [serveH1] = h1.listeners('connection') as [(this: Server, socket: Socket) => void];
    h1.removeAllListeners('connection');
    h1.on('connection', (socket) => {
      silent.add(socket);
      socket.once('close', () => silent.delete(socket));
      const serve = (): void =>
        sniff(socket, (isH2) => {
          silent.delete(socket);
          if (!isH2) return serveH1.call(h1, socket);
          // HTTP/1 keeps what its peer has ended; HTTP/2 would not see that its peer is gone before it writes.
          socket.allowHalfOpen = false;
          h2.emit('connection', socket);
        });
      if (greeted) readGreeting(socket, HTTP_SILENT_MS, serve);
      else serve();
    });
  }
  listener.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });

  return {
    async listen(port, host = '127.0.0.1') {
      listener.listen(port, host);
      await once(listener, 'listening');
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
      if (h1 !== undefined) h2.close(); // Sends GOAWAY on each session; it is not listening itself.
      // A kept-alive HTTP/1 connection that was busy at close() is not closed when it turns idle.
      const idle = setInterval(() => (h1 ?? (h2 as unknown as http.Server)).closeIdleConnections?.(), 50);
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
    },
  };
}

/** Tell HTTP/2 with prior knowledge from HTTP/1 by the first bytes, which are put back. */
function sniff(socket: Socket, route: (isH2: boolean) => void): void {
  const chunks: Buffer[] = [];
  const drop = (): void => void socket.destroy();
  const timer = setTimeout(drop, HTTP_SILENT_MS);
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    chunks.push(chunk);
    const seen = Buffer.concat(chunks);
    const n = Math.min(seen.length, PREFACE.length);
    const isH2 = seen.subarray(0, n).equals(PREFACE.subarray(0, n));
    if (isH2 && n < PREFACE.length) return;
    clearTimeout(timer);
    socket.off('readable', onReadable).off('error', drop).off('end', drop);
    socket.unshift(seen);
    route(isH2);
  };
  socket.on('readable', onReadable).on('error', drop).on('end', drop);
}
