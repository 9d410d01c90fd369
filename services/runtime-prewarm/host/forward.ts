// Bytes between connections made inside a sandbox and the LLM proxy of the node.
import { connect, type Server, type Socket } from 'node:net';
import { sleep } from '../../common/clock.ts';
import { greetingLine } from '../../common/greeting.ts';
import { PROXY_CONNECT_MS, PROXY_CONNECT_PAUSE_MS, PROXY_CONNECTIONS_MAX } from '../../common/limits.ts';
import { DueAnswer } from '../domain/due-answer.ts';

/** A connection to the LLM proxy for what comes out of a session's sandbox; undefined where it cannot be reached. */
export type ProxyConnect = (session: string) => Promise<Socket | undefined>;

/** Whether the proxy is there is looked at for so long after a call was cut. */
const LOOK_MS = 500;

/** The LLM proxy as one command's sandbox finds it. */
export class ProxyLine {
  readonly #connect: ProxyConnect;
  readonly #session: string;
  readonly #looks = new Set<Promise<void>>();
  #isAway = false;

  constructor(connect: ProxyConnect, session: string) {
    this.#connect = connect;
    this.#session = session;
  }

  /** The latest try to connect failed, whoever gave up first, or the proxy was gone when a call was cut. */
  get isAway(): boolean {
    return this.#isAway;
  }

  async connect(): ReturnType<ProxyConnect> {
    const socket = await this.#reach();
    // Whoever made the call may not try again.
    if (socket !== undefined) whenCut(socket, () => this.#lookAfter(performance.now() + LOOK_MS));
    return socket;
  }

  /** Nothing is looked at any more: a command whose last call was cut may end before the proxy is seen to be away. */
  async looked(): Promise<void> {
    await Promise.all(this.#looks);
  }

  async #reach(): ReturnType<ProxyConnect> {
    const socket = await this.#connect(this.#session);
    this.#isAway = socket === undefined;
    return socket;
  }

  #lookAfter(until: number): void {
    const look = this.#look(until).finally(() => this.#looks.delete(look));
    this.#looks.add(look);
  }

  /** A proxy that has cut a call itself knows why. One that is being killed may still take a connection, and ends that, too. */
  async #look(until: number): Promise<void> {
    while (performance.now() < until) {
      const socket = await this.#reach();
      if (socket === undefined) return;
      await ended(socket, until);
    }
  }
}

/** It ends, or is ended when it is time. */
function ended(socket: Socket, until: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, until - performance.now()));
    socket.once('end', end).once('error', end).resume();
  });
}

/** The proxy's end is closed while an answer is due. */
function whenCut(socket: Socket, isCut: () => void): void {
  const answer = new DueAnswer(socket.bytesWritten);
  let isOver = false;
  const end = (): void => {
    if (!isOver && answer.isDue(socket.bytesWritten)) isCut();
    isOver = true;
  };
  // It flows from here on, and nothing is lost: the proxy says nothing before it is asked.
  socket.on('data', (piece: Buffer) => answer.came(piece, socket.bytesWritten));
  socket.on('end', end).on('error', end);
}

export interface Forwarding {
  /** Connections that could not be made in PROXY_CONNECT_MS. */
  readonly failures: number;
  /** Stop listening and cut what is open. An open listener would keep the network namespace alive. */
  close(): void;
}

/** Forward every connection of a server; half-close is kept, both ends close together. */
export function forwardConnections(server: Server, toProxy: () => ReturnType<ProxyConnect>): Forwarding {
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
    const outside = await connectPatiently(toProxy, inside, stop.signal);
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
  toProxy: () => ReturnType<ProxyConnect>,
  inside: Socket,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const until = performance.now() + PROXY_CONNECT_MS;
  for (;;) {
    const socket = await toProxy();
    if (inside.destroyed || signal.aborted) socket?.destroy();
    if (socket !== undefined || inside.destroyed || signal.aborted) return socket;
    if (performance.now() > until) return undefined;
    await sleep(PROXY_CONNECT_PAUSE_MS, signal);
  }
}

/** By the Unix socket at the path. */
export const proxyAt =
  (path: string): ProxyConnect =>
  (session) => {
    const socket = connect({ path, allowHalfOpen: true });
    return new Promise((resolve) => {
      const onError = (): void => {
        socket.destroy();
        resolve(undefined);
      };
      socket.setTimeout(PROXY_CONNECT_MS, onError);
      // For good: a proxy that ends has taken connections that it never reads from.
      socket.on('error', onError);
      socket.once('connect', () => {
        socket.setTimeout(0);
        socket.write(greetingLine(session), (error) => resolve(error ? undefined : socket));
      });
    });
  };
