// What is made of a conversation, element by element. The next request repeats it: where a list begins with the very same
// elements as the one before, what was made of these is taken from there, and only what is new costs anything.

interface Made {
  readonly from: readonly unknown[];
  readonly made: readonly unknown[];
}

/** Of one body. */
export class Notes {
  /** Of the body that this one goes on from; not what that one had from bodies before it. */
  #before: ReadonlyMap<unknown, Made> | undefined;
  readonly #made = new Map<unknown, Made>();

  constructor(earlier?: Notes) {
    if (earlier !== undefined) this.#before = earlier.#made;
  }

  /** What `make` makes of each; it goes by the element alone. The list is for who reads it. */
  each<T, U>(list: readonly T[], make: (one: T) => U): readonly U[] {
    return this.inOrder<T, U>(make, list, (one) => make(one));
  }

  /**
   * What `make` makes of each, which may go by the elements up to it, as by what it has made of the one `before`. Each
   * `step` has a name of its own.
   */
  inOrder<T, U>(
    step: unknown,
    list: readonly T[],
    make: (one: T, before: U | undefined, place: number) => U,
  ): readonly U[] {
    const known = this.#made.get(step) ?? this.#before?.get(step);
    const same = known === undefined ? 0 : sharedStart(known.from, list);
    const made = (known?.made.slice(0, same) ?? []) as U[];
    for (let i = same; i < list.length; i++) made.push(make(list[i] as T, made[i - 1], i));
    this.#made.set(step, { from: list, made });
    // All steps are taken for this body, too: what was made for the one before is not held for longer.
    if (this.#made.size >= (this.#before?.size ?? 0)) this.#before = undefined;
    return made;
  }
}

/** How many elements both begin with. `===` would look at each of them, which for the most part are in no cache any more. */
export function sharedStart(a: readonly unknown[], b: readonly unknown[]): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && Object.is(a[n], b[n])) n++;
  return n;
}
