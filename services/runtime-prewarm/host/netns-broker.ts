// Listening sockets inside a sandbox's network namespace, accepted by this process: no shim inside, no route, no address.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { PolarError } from '../../common/errors.ts';
import { spawnChild } from '../../common/spawn-child.ts';
import { SYSTEM_PATH } from './tools.ts';

const SCRIPT = join(import.meta.dirname, 'netns_broker.py');

/** A helper that says nothing for so long stands still: SANDBOX_FAILED. It is ended, and what comes next has another. */
const NETNS_LISTENER_MS = 10_000;

interface Waiting {
  readonly child: ChildProcess;
  readonly timer: NodeJS.Timeout;
  readonly resolve: (server: Server) => void;
  readonly reject: (error: Error) => void;
}

/** One helper process for all sandboxes; a new one is started when it has ended. */
export class NetnsBroker implements AsyncDisposable {
  readonly #python: string;
  /** Enter the owning user namespace first: this process is not host root. */
  readonly #userns: boolean;
  readonly #limitMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #child: ChildProcess | undefined;
  #lastId = 0;
  /** When a helper said something, by `performance.now()`. */
  #answeredMs = 0;

  constructor(python: string, userns: boolean, limitMs = NETNS_LISTENER_MS) {
    this.#python = python;
    this.#userns = userns;
    this.#limitMs = limitMs;
  }

  /** A server that listens on 127.0.0.1:port inside the namespace of `pid`; add a `connection` listener. Throws SANDBOX_FAILED. */
  open(pid: number, port: number): Promise<Server> {
    const child = this.#running();
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Server>();
    // It may be this process that stood still: what has come meanwhile is read first.
    const timer = setTimeout(() => setImmediate(() => this.#late(id)), this.#limitMs);
    this.#waiting.set(id, { child, timer, resolve, reject });
    child.send({ id, pid, port, userns: this.#userns }, (error) => {
      if (error !== null) this.#fail(id, error.message);
    });
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  #running(): ChildProcess {
    if (this.#child !== undefined) return this.#child;
    const child = spawnChild(this.#python, ['-ISu', SCRIPT], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: { PATH: SYSTEM_PATH },
      detached: true,
      cwd: '/',
    });
    child.on('message', (message, handle) =>
      this.#answered(message as { id: number; error?: string }, handle),
    );
    const ended = (): void => {
      this.#giveUp(child);
      for (const [id, one] of [...this.#waiting])
        if (one.child === child) this.#fail(id, 'the helper process ended');
    };
    child.once('error', ended);
    child.once('exit', ended);
    this.#child = child;
    return child;
  }

  #late(id: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    // The helper sends one listener at a time, so others may be still to come.
    if (performance.now() - this.#answeredMs < this.#limitMs) {
      waiting.timer.refresh();
      return;
    }
    this.#fail(id, `no answer in ${this.#limitMs} ms`);
    this.#giveUp(waiting.child);
  }

  #answered({ id, error }: { id: number; error?: string }, handle: unknown): void {
    this.#answeredMs = performance.now();
    if (error !== undefined) {
      this.#fail(id, error);
      return;
    }
    const server = handle as Server;
    const waiting = this.#taken(id);
    if (waiting === undefined) server.close();
    else waiting.resolve(server);
  }

  #fail(id: number, why: string): void {
    this.#taken(id)?.reject(new PolarError('SANDBOX_FAILED', `no listener in the sandbox's network: ${why}`));
  }

  #taken(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(id);
    return waiting;
  }

  #giveUp(child: ChildProcess): void {
    if (this.#child === child) this.#child = undefined;
    child.kill('SIGKILL');
  }
}
