// The conversations of a session as a tree of messages: each call's messages are a place in it, so that a call costs the
// messages that are new in it, however many came before.

/** A place: the messages from the root to here. Equal messages are one place, so places are compared by identity. */
export class MessageNode {
  readonly parent: MessageNode | undefined;
  /** Of the last message; empty at the root. */
  readonly digest: string;
  /** Messages from the root to here. */
  readonly depth: number;
  /** Most places have one child or none, and need no map. */
  #children: MessageNode | Map<string, MessageNode> | undefined;

  constructor(parent?: MessageNode, digest = '') {
    this.parent = parent;
    this.digest = digest;
    this.depth = parent === undefined ? 0 : parent.depth + 1;
  }

  /** The place after one more message. */
  next(digest: string): MessageNode {
    const known = this.#children;
    const found = known instanceof Map ? known.get(digest) : known;
    if (found?.digest === digest) return found;
    const child = new MessageNode(this, digest);
    if (known instanceof Map) known.set(digest, child);
    else if (known === undefined) this.#children = child;
    else this.#children = new Map([known, child].map((one) => [one.digest, one]));
    return child;
  }

  /** The place after more messages. */
  extend(digests: readonly string[]): MessageNode {
    return digests.reduce((node: MessageNode, digest) => node.next(digest), this);
  }

  /** The place of the first `depth` messages, of all where there are not as many. */
  ancestor(depth: number): MessageNode {
    let node: MessageNode = this;
    while (node.depth > depth && node.parent !== undefined) node = node.parent;
    return node;
  }

  /** All digests, in order. */
  list(): string[] {
    const digests: string[] = [];
    for (let node: MessageNode = this; node.parent !== undefined; node = node.parent)
      digests.push(node.digest);
    return digests.reverse();
  }
}

/** How many messages are equal at the same place in both. */
export function equalInPlace(one: MessageNode, other: MessageNode): number {
  let [a, b] = [one.ancestor(other.depth), other.ancestor(one.depth)];
  let equal = 0;
  while (a !== b && a.parent !== undefined && b.parent !== undefined) {
    if (a.digest === b.digest) equal++;
    [a, b] = [a.parent, b.parent];
  }
  return equal + a.depth;
}
