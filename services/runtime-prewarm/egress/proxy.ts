// The egress proxy of one command: HTTP and CONNECT, on a listener inside the command's network namespace.
import {
  createServer,
  type Server as HttpServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { EGRESS_BYTES_MAX, EGRESS_CONNECTIONS_MAX, EGRESS_IDLE_MS } from '../../common/limits.ts';
import { Denials } from '../domain/denials.ts';
import { type EgressPolicy, type Target, targetOf, textOf } from '../domain/egress.ts';
import { passedOn } from '../domain/http-headers.ts';
import { connectTo, unreachable } from './connect.ts';
import { Refusal, refuseRequest, refuseTunnel } from './refusal.ts';

export interface EgressProxyOptions {
  readonly policy: EgressPolicy;
  /** Connects to what stands for this target in the sandbox itself; undefined: nothing does. */
  readonly inside: (target: Target, signal: AbortSignal) => Promise<Socket> | undefined;
  /** Default EGRESS_BYTES_MAX. */
  readonly bytesMax?: number;
  /** Default EGRESS_IDLE_MS. */
  readonly idleMs?: number;
}

const HTTPS_PORT = 443;
const HTTP_PORT = 80;

export class EgressProxy {
  readonly denials = new Denials();
  readonly #options: EgressProxyOptions;
  readonly #server: Server;
  readonly #http: HttpServer;
  readonly #stop = new AbortController();
  readonly #open = new Set<Socket>();
  readonly #idleMs: number;
  #bytesLeft: number;

  constructor(server: Server, options: EgressProxyOptions) {
    this.#options = options;
    this.#idleMs = options.idleMs ?? EGRESS_IDLE_MS;
    this.#bytesLeft = options.bytesMax ?? EGRESS_BYTES_MAX;
    this.#server = server;
    this.#http = createServer({ requestTimeout: 0 }, (request, response) => {
      this.#request(request, response).catch((error) => refuseRequest(response, error));
    });
    this.#http.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
      this.#tunnel(request, client as Socket, head).catch((error) => refuseTunnel(client, error));
    });
    this.#http.setTimeout(this.#idleMs);
    server.maxConnections = EGRESS_CONNECTIONS_MAX;
    server.on('connection', (socket) => {
      socket.allowHalfOpen = true;
      this.#keep(socket);
      this.#http.emit('connection', socket);
    });
  }

  /** Stop listening and cut what is open. */
  close(): void {
    this.#stop.abort();
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }

  async #tunnel(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    const target = targetOf(request.url ?? '', HTTPS_PORT);
    if (target === undefined) throw new Refusal('INVALID_REQUEST', 'CONNECT wants host:port');
    const server = await this.#connect(target, client);
    if (client.destroyed) return void server.destroy();
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    client.on('close', end);
    server.on('close', end);
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) server.write(head);
    this.#count(client);
    this.#count(server);
    client.pipe(server).pipe(client);
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '');
    if (url === null || url.protocol !== 'http:') {
      throw new Refusal(
        'INVALID_REQUEST',
        'this is a proxy: it wants CONNECT, or a request with an http:// URL',
      );
    }
    const target = targetOf(url.host, HTTP_PORT);
    if (target === undefined) throw new Refusal('INVALID_REQUEST', `${url.host} is no host`);
    const socket = await this.#connect(target, request.socket);
    if (response.destroyed) return void socket.destroy();
    const out = httpRequest({
      createConnection: () => socket,
      method: request.method ?? 'GET',
      path: `${url.pathname}${url.search}`,
      headers: passedOn(request.rawHeaders, ['host', url.host]),
      setHost: false,
    });
    response.once('close', () => socket.destroy()).on('error', () => socket.destroy());
    const { promise: answered, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const failed = (error: Error): void => reject(unreachable(target, error));
    out.once('response', resolve).on('error', failed);
    // Also of one that wants another protocol, which is no response here.
    out.once('close', () => failed(new Error('it has not answered')));
    request.on('error', reject);
    this.#count(request);
    request.pipe(out);
    this.#passOn(await answered, target, response);
  }

  #passOn(answer: IncomingMessage, target: Target, response: ServerResponse): void {
    const { statusCode = 502, statusMessage = '', rawHeaders } = answer;
    try {
      response.writeHead(statusCode, statusMessage, passedOn(rawHeaders, []));
    } catch (error) {
      // Hosts may say what no server of Node.js does.
      throw unreachable(target, error);
    }
    answer.on('error', () => response.destroy());
    this.#count(answer);
    answer.pipe(response);
  }

  /** Counts it where it is denied. */
  async #connect(target: Target, client: Socket): Promise<Socket> {
    const { policy, inside } = this.#options;
    const { signal } = this.#stop;
    if (this.#bytesLeft <= 0)
      throw new Refusal('EGRESS_LIMIT', 'this command has moved as many bytes as it may');
    try {
      const within = inside(target, signal);
      const socket = await (within ?? connectTo(policy, target, signal));
      this.#keep(socket);
      // A model call may be silent for as long as it is held.
      if (within !== undefined) for (const one of [client, socket]) one.setTimeout(0);
      if (signal.aborted) socket.destroy();
      return socket;
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'EGRESS_DENIED') {
        this.denials.add({ count: 1, targets: [textOf(target)] });
      }
      throw error;
    }
  }

  #keep(socket: Socket): void {
    this.#open.add(socket);
    socket.setTimeout(this.#idleMs, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#open.delete(socket));
  }

  #count(stream: Readable): void {
    stream.on('data', (chunk: Buffer) => {
      this.#bytesLeft -= chunk.length;
      if (this.#bytesLeft <= 0) for (const socket of this.#open) socket.destroy();
    });
  }
}
