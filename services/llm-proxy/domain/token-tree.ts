// The session's token tree as a radix tree over all that was served and sampled: finding the base of a prompt costs
// the length of that prompt, storing a call costs its new ids, however many calls there are.

/** What a prompt shares with an earlier call: the first `length` ids of its prompt and sampled ids. */
export interface Base {
  /** Index of the call, -1 for none. */
  readonly index: number;
  readonly length: number;
}

/** A run of ids that no call leaves or enters in the middle. */
interface Vertex {
  parent: Vertex | undefined;
  /** Ids before this run. */
  depth: number;
  ids: Int32Array;
  /** By their first id; unset: none. */
  children: Map<number, Vertex> | undefined;
  /** A call that goes through this run. */
  readonly through: number;
  /** A call whose ids end with this run, -1 for none. */
  ending: number;
}

const endOf = (vertex: Vertex): number => vertex.depth + vertex.ids.length;

/** Ids at the start of both, from the given places. */
function shared(a: Int32Array, aFrom: number, b: Int32Array, bFrom: number): number {
  const most = Math.min(a.length - aFrom, b.length - bFrom);
  let n = 0;
  while (n < most && a[aFrom + n] === b[bFrom + n]) n++;
  return n;
}

export class TokenTree {
  readonly #root: Vertex = vertex(undefined, 0, new Int32Array(), -1, -1);
  /** Where each call ends. */
  readonly #ends: Vertex[] = [];

  /** Calls added; the next one gets this index. */
  get size(): number {
    return this.#ends.length;
  }

  /** Ids of a call, prompt and sampled. */
  lengthOf(index: number): number {
    const end = this.#ends[index];
    if (end === undefined) throw new RangeError(`call ${index} of ${this.size}`);
    return endOf(end);
  }

  /** Ids of a call, prompt and sampled, copied: those in places `from` to below `to`. */
  idsOf(index: number, from = 0, to = this.lengthOf(index)): Int32Array {
    const ids = new Int32Array(to - from);
    for (let at = this.#ends[index]; at !== undefined && endOf(at) > from; at = at.parent) {
      if (at.depth >= to) continue;
      const start = Math.max(from, at.depth);
      ids.set(at.ids.subarray(start - at.depth, to - at.depth), start - from);
    }
    return ids;
  }

  /** Whether a call's ids begin with all of an earlier one. */
  extends(index: number, earlier: number): boolean {
    const end = this.#ends[earlier];
    let at = this.#ends[index];
    while (at !== undefined && at !== end && at.depth >= this.lengthOf(earlier)) at = at.parent;
    return at !== undefined && at === end;
  }

  /**
   * The call with which a prompt shares most; of several, one that it extends. The prompt is all ids of the call
   * `behind` (-1: none), which are not looked at again, then these.
   */
  findBase(prompt: Int32Array, behind = -1): Base {
    let at = this.#ends[behind] ?? this.#root;
    let done = 0;
    for (;;) {
      const child = done < prompt.length ? at.children?.get(prompt[done] as number) : undefined;
      if (child === undefined) break;
      const n = shared(child.ids, 0, prompt, done);
      done += n;
      if (n < child.ids.length) return { index: child.through, length: child.depth + n };
      at = child;
    }
    const length = endOf(at);
    if (length === 0) return { index: -1, length: 0 };
    return { index: at.ending >= 0 ? at.ending : at.through, length };
  }

  /** Add the next call: the ids that it takes from its base, then the rest of its prompt, then what was sampled. */
  add(base: Base, suffix: Int32Array, sampled: Int32Array): void {
    const fresh = new Int32Array(suffix.length + sampled.length);
    fresh.set(suffix);
    fresh.set(sampled, suffix.length);
    const end = this.#extend(this.#at(base), fresh);
    if (end.ending < 0) end.ending = this.size;
    this.#ends.push(end);
  }

  /** The vertex that ends where the base's shared part ends. */
  #at(base: Base): Vertex {
    if (base.index < 0 || base.length === 0) return this.#root;
    if (base.length > this.lengthOf(base.index)) {
      throw new RangeError(`base of ${base.length} ids in a call of ${this.lengthOf(base.index)}`);
    }
    let at = this.#ends[base.index] as Vertex;
    while (at.parent !== undefined && at.depth >= base.length) at = at.parent;
    return split(at, base.length - at.depth);
  }

  #extend(from: Vertex, fresh: Int32Array): Vertex {
    let at = from;
    let done = 0;
    while (done < fresh.length) {
      const child = at.children?.get(fresh[done] as number);
      if (child === undefined) {
        const leaf = vertex(at, endOf(at), fresh.subarray(done), this.size, -1);
        adopt(at, leaf);
        return leaf;
      }
      const n = shared(child.ids, 0, fresh, done);
      done += n;
      at = split(child, n);
    }
    return at;
  }
}

function vertex(
  parent: Vertex | undefined,
  depth: number,
  ids: Int32Array,
  through: number,
  ending: number,
): Vertex {
  return { parent, depth, ids, children: undefined, through, ending };
}

function adopt(parent: Vertex, child: Vertex): void {
  parent.children ??= new Map();
  parent.children.set(child.ids[0] as number, child);
}

/** The vertex that ends after the first `n` ids of this one; the lower part keeps its identity. */
function split(lower: Vertex, n: number): Vertex {
  if (n === lower.ids.length) return lower;
  const upper = vertex(lower.parent, lower.depth, lower.ids.subarray(0, n), lower.through, -1);
  if (lower.parent !== undefined) adopt(lower.parent, upper);
  lower.ids = lower.ids.subarray(n);
  lower.depth += n;
  lower.parent = upper;
  adopt(upper, lower);
  return upper;
}
