// A map that holds the entries used last.
import { shortKey } from './ids.ts';

export class Kept<V> {
  readonly #max: number;
  /** The one used last comes last. */
  readonly #entries = new Map<string, V>();

  constructor(max: number) {
    this.#max = max;
  }

  /** What is kept under the name, else what `make` makes. A promise that is rejected is not kept. */
  get(named: string, make: () => V): V {
    const key = shortKey(named);
    const known = this.#entries.get(key);
    const value = known ?? make();
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (known === undefined && value instanceof Promise) {
      value.catch(() => {
        if (this.#entries.get(key) === value) this.#entries.delete(key);
      });
    }
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#max && oldest !== undefined) this.#entries.delete(oldest);
    return value;
  }

  delete(key: string): void {
    this.#entries.delete(shortKey(key));
  }
}
