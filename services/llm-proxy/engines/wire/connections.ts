// The connections to one engine: as many as there are calls, kept for the calls to come.
import { ENGINE_IDLE_CONNECTIONS_MAX } from '../../../common/limits.ts';
import type { Answer } from './answer.ts';
import { type Address, Connection, type OnHead, Silence, WIRE_LIMITS } from './connection.ts';

export class Connections implements Disposable {
  readonly #address: Address;
  readonly #limits: typeof WIRE_LIMITS;
  readonly #all = new Set<Connection>();
  /** The one used last at the end: it is the least likely to be closed by the engine. */
  readonly #idle: Connection[] = [];

  constructor(address: Address, limits = WIRE_LIMITS) {
    this.#address = address;
    this.#limits = limits;
  }

  [Symbol.dispose](): void {
    for (const connection of this.#all) connection.destroy(new Error('the proxy is stopping'));
  }

  /** Send a request. Rejects with Error where no answer comes, or with the signal's reason. */
  async send(head: string, body: readonly Buffer[], signal: AbortSignal, onHead?: OnHead): Promise<Answer> {
    for (;;) {
      signal.throwIfAborted();
      const connection = this.#take();
      try {
        return await connection.send(head, body, signal, onHead);
      } catch (error) {
        signal.throwIfAborted();
        // The engine closed a kept connection while the request was on its way: no answer to this request.
        if (connection.requests === 1 || error instanceof Silence) throw error;
      }
    }
  }

  /** Give up the calls of which no answer has begun. */
  giveUpSilent(why: Silence): void {
    for (const connection of this.#all) connection.giveUpSilent(why);
  }

  #take(): Connection {
    const idle = this.#idle.pop();
    if (idle === undefined) return this.#connect();
    if (performance.now() - idle.idleSince <= this.#limits.idleMs) return idle;
    // All others have been idle for longer.
    for (const one of [idle, ...this.#idle.splice(0)]) one.destroy(new Error('it was idle for too long'));
    return this.#connect();
  }

  #connect(): Connection {
    const connection = new Connection(
      this.#address,
      this.#limits,
      (one) => this.#keep(one),
      (one) => this.#forget(one),
    );
    this.#all.add(connection);
    return connection;
  }

  #keep(connection: Connection): void {
    if (this.#idle.length >= ENGINE_IDLE_CONNECTIONS_MAX) {
      connection.destroy(new Error('there are enough'));
      return;
    }
    connection.idleSince = performance.now();
    this.#idle.push(connection);
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}
