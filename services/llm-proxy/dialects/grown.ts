// What a conversation adds up to, turn by turn, as it was known behind each of its turns: what is known later goes on
// from what was known before, and both share the memory. Kept apart, a session's turns would take the square of it.

/** A list at one moment; it never changes itself. */
export class GrownList<T> {
  static readonly #none = new GrownList<never>([], 0);
  /** Of all that go on from each other. */
  readonly #items: T[];
  readonly length: number;

  private constructor(items: T[], length: number) {
    this.#items = items;
    this.length = length;
  }

  static none<T>(): GrownList<T> {
    return GrownList.#none;
  }

  /** The first of the last `most`. */
  findLately(most: number, is: (item: T) => boolean): T | undefined {
    for (let i = Math.max(0, this.length - most); i < this.length; i++)
      if (is(this.#items[i] as T)) return this.#items[i];
    return undefined;
  }

  with(more: readonly T[]): GrownList<T> {
    if (more.length === 0) return this;
    // Where another one has gone on from here, or may yet, as from nothing, this one goes on by itself.
    const isLast = this.length > 0 && this.#items.length === this.length;
    const items = isLast ? this.#items : this.#items.slice(0, this.length);
    for (const item of more) items.push(item);
    return new GrownList(items, items.length);
  }
}

/** A set of texts at one moment; it never changes itself. */
export class GrownSet {
  static readonly none = new GrownSet(new Map(), 0);
  /** Each by its place, of all that go on from each other. */
  readonly #places: Map<string, number>;
  readonly size: number;

  private constructor(places: Map<string, number>, size: number) {
    this.#places = places;
    this.size = size;
  }

  has(text: string): boolean {
    const place = this.#places.get(text);
    return place !== undefined && place < this.size;
  }

  with(more: readonly string[]): GrownSet {
    if (more.every((text) => this.has(text))) return this;
    const isLast = this.size > 0 && this.#places.size === this.size;
    const places = isLast ? this.#places : new Map([...this.#places].slice(0, this.size));
    for (const text of more) if (!places.has(text)) places.set(text, places.size);
    return new GrownSet(places, places.size);
  }
}
