// The conversations of an attempt as a tree of message digests: which recorded calls a request goes on from is a walk
// of its own length, however many calls there are, and a call adds what is new in it.
import type { Turn } from '../../common/conversations.ts';
import { sharedStart } from './notes.ts';

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

/** Calls whose whole conversation, reply included, is the same. */
export interface Heads {
  /** Oldest first. */
  readonly heads: readonly number[];
  /** Messages of it, the reply included. */
  readonly headCount: number;
}

/** What a request has in common with what was recorded; the heads are those of the longest conversation that it goes on from. */
export interface Found extends Heads {
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
  /** The request that was looked up last: the next one mostly goes on from it. */
  #walked: { readonly digests: readonly string[]; readonly way: readonly Place[] } = { digests: [], way: [] };

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

  /** How many of the messages stand at the start of a call's conversation, its reply included. */
  shared(index: number, digests: readonly string[]): number {
    const sent = this.#sent[index];
    let own = sent === undefined ? this.#root : (this.#replyTo(index, sent) ?? sent);
    let at = this.#wayOf(digests).at(-1) ?? this.#root;
    // Up to where both ways part: near by for a request that goes on from the call.
    while (at !== own) {
      if (at.depth >= own.depth) at = at.parent as Place;
      else own = own.parent as Place;
    }
    return at.depth;
  }

  /** What the request goes on from, the longest conversation first. */
  headsOf(digests: readonly string[]): Iterable<Heads> {
    return headsOn(this.#wayOf(digests));
  }

  find(digests: readonly string[]): Found {
    const way = this.#wayOf(digests);
    const [longest = { heads: [], headCount: 0 }] = headsOn(way);
    const nearest = longestFrom(way.at(-1) ?? this.#root).latest;
    return { ...longest, shared: way.length, nearest };
  }

  /** The places behind each message at the start of the request that was recorded so. */
  #wayOf(digests: readonly string[]): readonly Place[] {
    const { digests: before, way: known } = this.#walked;
    let n = Math.min(known.length, sharedStart(before, digests));
    const way = known.slice(0, n);
    for (let at = way.at(-1) ?? this.#root; n < digests.length; n++) {
      const next = at.children?.get(digests[n] as string);
      if (next === undefined) break;
      way.push(next);
      at = next;
    }
    this.#walked = { digests, way };
    return way;
  }

  #baseOf({ baseIndex, baseCount }: Turn): Place {
    const sent = this.#sent[baseIndex];
    if (sent === undefined || baseCount === 0) return this.#root;
    if (baseCount > sent.depth) {
      const reply = this.#replyTo(baseIndex, sent);
      if (reply === undefined) throw new RangeError(`call ${baseIndex} has no reply`);
      return reply;
    }
    let at = sent;
    while (at.depth > baseCount) at = at.parent as Place;
    return at;
  }

  /** Unset: it was not delivered. */
  #replyTo(index: number, sent: Place): Place | undefined {
    for (const child of sent.children?.values() ?? []) if (child.replied?.includes(index)) return child;
    return undefined;
  }
}

function* headsOn(way: readonly Place[]): Iterable<Heads> {
  for (let i = way.length - 1; i >= 0; i--) {
    const { replied, depth } = way[i] as Place;
    if (replied !== undefined) yield { heads: replied, headCount: depth };
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
