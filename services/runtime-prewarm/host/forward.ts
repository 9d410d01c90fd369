// Bytes between connections made inside a sandbox and the LLM proxy of the node.
import { connect, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { sleep } from '../../common/clock.ts';
import { PROXY_CONNECT_MS, PROXY_CONNECT_PAUSE_MS, PROXY_CONNECTIONS_MAX } from '../../common/limits.ts';

export interface ProxyAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

export interface Forwarding {
  /** Connections that could not be made in PROXY_CONNECT_MS. */
  readonly failures: number;
  /** Stop listening and cut what is open. An open listener would keep the network namespace alive. */
  close(): void;
}

export function proxyAddress(url: string): ProxyAddress {
  const { protocol, hostname, port } = new URL(url);
  const tls = protocol === 'https:';
  const defaultPort = tls ? 443 : 80;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port), tls };
}

/** Forward every connection of a server; half-close is kept, both ends close together. */
export function forwardConnections(server: Server, address: ProxyAddress): Forwarding {
  const stop = new AbortController();
  const open = new Set<Socket>();
  let failures = 0;
  server.maxConnections = PROXY_CONNECTIONS_MAX;
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.setNoDelay(true);
    socket.once('close', () => open.delete(socket));
  };
  const join = async (inside: Socket): Promise<void> => {
    inside.allowHalfOpen = true;
    inside.pause();
    inside.on('error', () => inside.destroy());
    keep(inside);
    const outside = await connectPatiently(address, inside, stop.signal);
    if (outside === undefined) {
      if (!inside.destroyed && !stop.signal.aborted) failures++;
      inside.resetAndDestroy();
      return;
    }
    keep(outside);
    const end = (): void => {
      inside.destroy();
      outside.destroy();
    };
    inside.on('close', end);
    outside.on('error', end).on('close', end);
    inside.pipe(outside).pipe(inside);
  };
  server.on('connection', (socket) => void join(socket));
  return {
    get failures() {
      return failures;
    },
    close() {
      stop.abort();
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** A proxy that restarts is away for a moment: the harness does not notice. */
async function connectPatiently(
  address: ProxyAddress,
  inside: Socket,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const until = performance.now() + PROXY_CONNECT_MS;
  for (;;) {
    const socket = await connectOnce(address);
    if (inside.destroyed || signal.aborted) socket?.destroy();
    if (socket !== undefined || inside.destroyed || signal.aborted) return socket;
    if (performance.now() > until) return undefined;
    await sleep(PROXY_CONNECT_PAUSE_MS, signal);
  }
}

/** Undefined where it cannot be reached. */
export function connectOnce({ host, port, tls }: ProxyAddress): Promise<Socket | undefined> {
  const options = { host, port, allowHalfOpen: true, noDelay: true };
  const socket = tls ? connectTls({ ...options, servername: host }) : connect(options);
  return new Promise((resolve) => {
    const onError = (): void => {
      socket.destroy();
      resolve(undefined);
    };
    socket.setTimeout(PROXY_CONNECT_MS, onError);
    socket.once('error', onError);
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      socket.setTimeout(0);
      socket.off('error', onError);
      resolve(socket);
    });
  });
}
