// Harnesses repeat the whole conversation each turn. Where its elements are the very same objects again, as those of a
// known body are, each is read once, and what is made of it is the very same again too.
import type { JsonValue } from '../domain/json.ts';
import type { Faults } from './faults.ts';

/** What an element says, after what was said before it. */
export interface Reading<State, Said> {
  readonly said: Said;
  /** What the next element is read after; `before` itself where nothing has changed. */
  readonly after: State;
}

export class ReadOnce<State, Said> {
  readonly #known = new WeakMap<object, Reading<State, Said> & { readonly before: State }>();

  /** `read` goes by the element and `before` alone. What is read with faults is not kept. */
  read(
    element: JsonValue,
    before: State,
    faults: Faults,
    read: () => Reading<State, Said>,
  ): Reading<State, Said> {
    if (typeof element !== 'object' || element === null) return read();
    const known = this.#known.get(element);
    if (known !== undefined && known.before === before) return known;
    const reading = { ...read(), before };
    if (faults.none) this.#known.set(element, reading);
    return reading;
  }
}
