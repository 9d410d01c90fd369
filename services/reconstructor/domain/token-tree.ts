// A radix tree of token ids. Calls that share a beginning share its memory, so that a session costs what is new in
// each call, not what each prompt is long; that one call's prompt begins with another's is then a walk to the root.
import { roomForIds } from '../../common/columns.ts';

const NOTHING = new Int32Array();

/** A place in the tree: the ids from the root to here. Stays valid whatever is added later. */
export class TokenNode {
  /** Ids from the root to here. */
  readonly depth: number;
  parent: TokenNode | undefined;
  /** Ids from the parent to here. */
  label: Int32Array;
  /** By their first id; most places have one child or none, and need no map. */
  #children: TokenNode | Map<number, TokenNode> | undefined;

  constructor(parent: TokenNode | undefined, label: Int32Array) {
    this.parent = parent;
    this.label = label;
    this.depth = (parent?.depth ?? 0) + label.length;
    parent?.put(this);
  }

  /** That which goes on with this id. */
  child(id: number): TokenNode | undefined {
    const children = this.#children;
    if (children instanceof Map) return children.get(id);
    return children?.label[0] === id ? children : undefined;
  }

  /** A child, in the place of one that begins with the same id. */
  put(child: TokenNode): void {
    const known = this.#children;
    const first = child.label[0] as number;
    if (known instanceof Map) known.set(first, child);
    else if (known === undefined || known.label[0] === first) this.#children = child;
    else this.#children = new Map([known, child].map((one) => [one.label[0] as number, one]));
  }
}

export class TokenTree {
  readonly root = new TokenNode(undefined, NOTHING);

  /** The place after `ids` behind `from`. Keeps `ids` where all are new, else a copy of those that are. */
  extend(from: TokenNode, ids: Int32Array): TokenNode {
    let node = from;
    let at = 0;
    while (at < ids.length) {
      const child = node.child(ids[at] as number);
      if (child === undefined) return new TokenNode(node, at === 0 ? ids : ids.slice(at));
      const length = commonLength(child.label, ids, at);
      node = length < child.label.length ? split(child, length) : child;
      at += length;
    }
    return node;
  }

  /** The place `depth` ids below the root on the way to `node`; 0 to `node.depth`. */
  ancestor(node: TokenNode, depth: number): TokenNode {
    let below = node;
    while (below.parent !== undefined && below.parent.depth >= depth) below = below.parent;
    return below.depth === depth ? below : split(below, depth - (below.parent?.depth ?? 0));
  }
}

/** Ids on the way to `node` from position `from` on, copied: to the beginning of `ids`. */
export function idsOf(node: TokenNode, from = 0, ids = roomForIds(node.depth - from)): Int32Array {
  for (let at: TokenNode | undefined = node; at !== undefined && at.depth > from; at = at.parent) {
    const start = at.depth - at.label.length - from;
    if (start >= 0) ids.set(at.label, start);
    else ids.set(at.label.subarray(-start), 0);
  }
  return ids;
}

/** Length of what the ways to both have in common. */
export function commonDepth(a: TokenNode, b: TokenNode): number {
  let [left, right] = [a, b];
  while (left !== right) {
    if (left.depth >= right.depth) left = left.parent as TokenNode;
    else right = right.parent as TokenNode;
  }
  return left.depth;
}

/** True when the ids of `b` begin with those of `a`. */
export const isPrefix = (a: TokenNode, b: TokenNode): boolean => commonDepth(a, b) === a.depth;

function commonLength(label: Int32Array, ids: Int32Array, at: number): number {
  const most = Math.min(label.length, ids.length - at);
  let length = 1; // The child was found by its first id.
  while (length < most && label[length] === ids[at + length]) length++;
  return length;
}

/** A new node in the middle of the way to `node`, `length` ids behind its parent. */
function split(node: TokenNode, length: number): TokenNode {
  const upper = new TokenNode(node.parent, node.label.subarray(0, length));
  node.label = node.label.subarray(length);
  node.parent = upper;
  upper.put(node);
  return upper;
}
