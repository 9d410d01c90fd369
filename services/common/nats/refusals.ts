// What the server forbids: it tells so on the connection, beside what was asked, which is never answered.
import type { NatsConnection } from 'nats';
import { PolarError } from '../errors.ts';

/** Subjects that are remembered; the oldest go first. */
const SUBJECTS_MAX = 64;

export class Refusals {
  /** By what is forbidden, the newest last. */
  readonly #seen = new Map<string, PolarError>();

  constructor(nc: NatsConnection) {
    void this.#watch(nc);
  }

  /** Why nothing comes of what was published to the first of these, or subscribed to; undefined: nothing was said. */
  of(...subjects: readonly string[]): PolarError | undefined {
    return subjects.map((subject) => this.#seen.get(subject)).find((error) => error !== undefined);
  }

  get last(): PolarError | undefined {
    return [...this.#seen.values()].at(-1);
  }

  async #watch(nc: NatsConnection): Promise<void> {
    for await (const { type, permissionContext: refused } of nc.status()) {
      // Another connection may have other rights, and is told anew what it has not.
      if (type === 'reconnect') this.#seen.clear();
      if (refused === undefined) continue;
      const { operation, subject } = refused;
      const verb = operation === 'publish' ? 'publish to' : 'subscribe to';
      this.#seen.delete(subject);
      this.#seen.set(
        subject,
        new PolarError(
          'NATS_REFUSED',
          `NATS does not let this user ${verb} ${subject}: give it the permission`,
        ),
      );
      const [oldest = ''] = this.#seen.keys();
      if (this.#seen.size > SUBJECTS_MAX) this.#seen.delete(oldest);
    }
  }
}
