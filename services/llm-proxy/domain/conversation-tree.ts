// The conversations of an attempt as a tree of message digests: which recorded calls a request goes on from is a walk
// of its own length, however many calls there are, and a call adds what is new in it.
import type { Turn } from '../../common/conversations.ts';

/** The place behind a message. */
interface Place {
  readonly parent: Place | undefined;
  /** Messages up to here. */
  readonly depth: number;
  children: Map<string, Place> | undefined;
  /** Calls whose reply is the last message here, oldest first. */
  replied: number[] | undefined;
  /** A call that goes through here; the latest that ends here. */
  latest: number;
}

/** What a request has in common with what was recorded. */
export interface Found {
  /** Calls whose whole conversation, reply included, is the longest such beginning of the request; oldest first. */
  readonly heads: readonly number[];
  /** Messages of that beginning. */
  readonly headCount: number;
  /** Messages at the start of the request that a recorded conversation begins with too. */
  readonly shared: number;
  /** The call with the longest conversation of those that share them, by the way taken last; -1 for none. */
  readonly nearest: number;
}

const place = (parent: Place | undefined, latest: number): Place => ({
  parent,
  depth: parent === undefined ? 0 : parent.depth + 1,
  children: undefined,
  replied: undefined,
  latest,
});

export class ConversationTree {
  readonly #root = place(undefined, -1);
  /** Behind the messages of each call. */
  readonly #sent: Place[] = [];

  /** Add the next call. */
  add(turn: Turn): void {
    const index = this.#sent.length;
    let at = this.#baseOf(turn);
    for (const digest of turn.fresh) at = enter(at, digest, index);
    this.#sent.push(at);
    at.latest = index;
    if (turn.reply === '') return;
    const end = enter(at, turn.reply, index);
    end.latest = index;
    end.replied = [...(end.replied ?? []), index];
  }

  find(digests: readonly string[]): Found {
    let at = this.#root;
    let head: Place | undefined;
    for (const digest of digests) {
      const next = at.children?.get(digest);
      if (next === undefined) break;
      at = next;
      if (at.replied !== undefined) head = at;
    }
    const shared = at.depth;
    const nearest = longestFrom(at).latest;
    return { heads: head?.replied ?? [], headCount: head?.depth ?? 0, shared, nearest };
  }

  #baseOf({ baseIndex, baseCount }: Turn): Place {
    const sent = this.#sent[baseIndex];
    if (sent === undefined || baseCount === 0) return this.#root;
    if (baseCount > sent.depth) return this.#replyOf(baseIndex, sent);
    let at = sent;
    while (at.depth > baseCount) at = at.parent as Place;
    return at;
  }

  #replyOf(index: number, sent: Place): Place {
    for (const child of sent.children?.values() ?? []) if (child.replied?.includes(index)) return child;
    throw new RangeError(`call ${index} has no reply`);
  }
}

function longestFrom(place: Place): Place {
  let at = place;
  while (at.children !== undefined) at = [...at.children.values()].at(-1) as Place;
  return at;
}

function enter(at: Place, digest: string, index: number): Place {
  at.children ??= new Map();
  let next = at.children.get(digest);
  if (next === undefined) {
    next = place(at, index);
    at.children.set(digest, next);
  }
  return next;
}
