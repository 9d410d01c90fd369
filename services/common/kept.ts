// A map that holds the entries used last.
import { sha256Half } from './ids.ts';

/** Of a longer one its digest is held: keys say what a request does, and that may be megabytes. */
const KEY_CHARS_MAX = 128;

const shortened = (key: string): string => (key.length > KEY_CHARS_MAX ? sha256Half(key) : key);

export class Kept<V> {
  readonly #max: number;
  /** The one used last comes last. */
  readonly #entries = new Map<string, V>();

  constructor(max: number) {
    this.#max = max;
  }

  /** What is kept under the name, else what `make` makes. A promise that is rejected is not kept. */
  get(named: string, make: () => V): V {
    const key = shortened(named);
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
    this.#entries.delete(shortened(key));
  }
}
