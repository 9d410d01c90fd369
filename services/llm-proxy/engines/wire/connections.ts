// The connections to one engine: as many as there are calls, kept for the calls to come.
import { ENGINE_IDLE_CONNECTIONS_MAX } from '../../../common/limits.ts';
import type { Answer } from './answer.ts';
import { type Address, Connection, type OnHead } from './connection.ts';

export class Connections implements Disposable {
  readonly #address: Address;
  readonly #all = new Set<Connection>();
  /** The one used last at the end: it is the least likely to be closed by the engine. */
  readonly #idle: Connection[] = [];

  constructor(address: Address) {
    this.#address = address;
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
        if (connection.requests === 1) throw error;
      }
    }
  }

  #take(): Connection {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const connection = new Connection(
      this.#address,
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
    this.#idle.push(connection);
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}
