// The Docker Engine API over its Unix socket, by node:http alone. Paths carry no version: the engine's newest is taken.
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { abortable, Deadline } from '../../../common/clock.ts';
import { DOCKER_CALL_MS } from '../../../common/limits.ts';

/** Of each kind of calls; more wait, and no longer than their limit. */
const CONNECTIONS_MAX = 64;
/** The progress of a fetch that takes all of its time is a quarter of it. */
const ANSWER_CHARS_MAX = 64 * 1024 * 1024;

/** An answer that is no success. What the engine could not be asked is an error of node:http. */
export class EngineError extends Error {
  readonly status: number;
  /** To what was asked a second time: the engine may have done it the first time. */
  readonly isSecond: boolean;

  constructor(status: number, message: string, isSecond = false) {
    super(message);
    this.status = status;
    this.isSecond = isSecond;
  }
}

export interface CallOptions {
  readonly body?: object;
  /** Ends it sooner. */
  readonly signal?: AbortSignal;
  /** Default: DOCKER_CALL_MS. With more it has a connection beside those of all other calls, which it does not keep waiting. */
  readonly limitMs?: number;
  /** Asked twice it does no harm. Default: GET and DELETE. */
  readonly repeatable?: boolean;
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
  readonly repeatable: boolean;
  /** Gives it up. */
  readonly signal: AbortSignal;
}

/** The whole of it, too. */
type Answer = readonly [answer: IncomingMessage, said: string];
type LastAnswer = readonly [...Answer, isSecond: boolean];

/** Asked twice they do what they do once. */
const REPEATABLE = ['GET', 'DELETE'];

export class Engine {
  readonly socketPath: string;
  /** Called when it ends a call without an answer, or is not there. */
  onBroken: () => void = () => {};
  readonly #callMs: number;
  readonly #quick = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX });
  /** Of fetches of images and such: those whose callers have left go on, and may be many. */
  readonly #long = new Agent({ maxSockets: CONNECTIONS_MAX });
  #isClosed = false;

  constructor(socketPath: string, callMs = DOCKER_CALL_MS) {
    this.socketPath = socketPath;
    this.#callMs = callMs;
  }

  /** The answer's JSON; undefined where it has none. Throws EngineError. */
  async call<T = unknown>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    return parsed(await this.text(method, path, options)) as T;
  }

  /** The whole answer. Throws EngineError. */
  async text(method: string, path: string, options: CallOptions = {}): Promise<string> {
    const { body, signal, limitMs = this.#callMs, repeatable = REPEATABLE.includes(method) } = options;
    signal?.throwIfAborted();
    // Not withTimeout: a sandbox takes a dozen calls, and each would be held for all of its limit.
    using limit = new Deadline(limitMs, ...(signal === undefined ? [] : [signal]));
    const agent = limitMs > this.#callMs ? this.#long : this.#quick;
    const asked = { method, path, body, repeatable, signal: limit.signal };
    try {
      // One that waits for a connection tells its end no sooner than it has one.
      return checked(...(await abortable(this.#answered(asked, agent), limit.signal)));
    } catch (error) {
      if (error instanceof EngineError) throw error;
      signal?.throwIfAborted();
      if (limit.isOver) throw tooLate(method, path, limitMs);
      this.onBroken();
      throw error;
    }
  }

  async #answered(asked: Asked, agent: Agent): Promise<LastAnswer> {
    const first = await this.#askKept(asked, agent);
    return first === undefined ? [...(await this.#ask(asked, false)[1]), true] : [...first, false];
  }

  /**
   * Over a connection that was kept. Undefined where the engine has ended that without an answer, as it may do with one that
   * lay idle at any moment: what can be asked twice is then to be asked over a fresh one.
   */
  async #askKept(asked: Asked, agent: Agent): Promise<Answer | undefined> {
    const [call, answered] = this.#ask(asked, agent);
    let hasBegun = false;
    call.once('response', () => {
      hasBegun = true;
    });
    try {
      return await answered;
    } catch (error) {
      const isFresh = !call.reusedSocket || hasBegun;
      if (isFresh || this.#isClosed || asked.signal.aborted || !asked.repeatable) throw error;
      return undefined;
    }
  }

  #ask({ method, path, body, signal }: Asked, agent: Agent | false): [ClientRequest, Promise<Answer>] {
    const { socketPath } = this;
    const call = request({ socketPath, agent, method, path, ...jsonHeaders(body) });
    signal.addEventListener('abort', () => call.destroy(), { once: true });
    const answered = answerOf(call);
    send(call, body);
    return [call, answered];
  }

  /** A connection that the engine takes over for raw bytes. Throws EngineError. */
  async hijack(path: string, body?: object): Promise<Socket> {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const { socketPath } = this;
    const { headers } = jsonHeaders(body);
    const call = request({
      ...{ socketPath, agent: false, method: 'POST', path },
      headers: { ...headers, Connection: 'Upgrade', Upgrade: 'tcp' },
    });
    const late = setTimeout(() => call.destroy(new Error('the engine does not answer')), DOCKER_CALL_MS);
    answerOf(call)
      .then(([answer, said]) => checked(answer, said, false))
      .then(() => reject(new Error('the engine did not hand over the connection')), reject);
    call.once('upgrade', (_answer, socket: Socket, head) => {
      if (head.byteLength > 0) socket.unshift(head);
      socket.on('error', () => {});
      resolve(socket);
    });
    send(call, body);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#quick.destroy();
    this.#long.destroy();
  }
}

/** Rejects where it breaks off. */
function answerOf(call: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    call.on('error', reject);
    call.once('response', (answer) => {
      let said = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece: string) => {
        said += piece;
        if (said.length > ANSWER_CHARS_MAX) call.destroy(new Error('the engine answers with too much'));
      });
      answer.on('error', reject).once('end', () => resolve([answer, said]));
    });
  });
}

function tooLate(method: string, path: string, limitMs: number): Error {
  const [asked = ''] = path.split('?');
  return new DOMException(
    `the engine did not answer ${method} ${asked} within ${limitMs} ms`,
    'TimeoutError',
  );
}

function jsonHeaders(body: object | undefined): { headers: Record<string, string> } {
  return { headers: body === undefined ? {} : { 'Content-Type': 'application/json' } };
}

const send = (call: ClientRequest, body: object | undefined): unknown =>
  call.end(body === undefined ? undefined : JSON.stringify(body));

/** 304: what was asked for is so already. */
function checked({ statusCode = 0 }: IncomingMessage, said: string, isSecond: boolean): string {
  if (statusCode < 300 || statusCode === 304) return said;
  const { message } = (parsed(said) ?? {}) as { message?: string };
  throw new EngineError(statusCode, message ?? said, isSecond);
}

function parsed(said: string): unknown {
  try {
    return JSON.parse(said);
  } catch {
    return undefined;
  }
}
