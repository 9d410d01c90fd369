// The replies of an attempt that later requests may name by an id, instead of sending what was said once more.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { Conversations } from '../../common/conversations.ts';

/** What a request names. */
export interface Refers {
  /** Call with whose reply the conversation ends that it goes on from; unset: none, or none that could be one. */
  readonly previous: string | undefined;
  /** Calls of whose replies it names items. */
  readonly replies: readonly string[];
}

/** What it finds: digests, or the messages themselves. */
export interface Found<T> {
  /** The conversation, the reply last; unset: there is none. */
  readonly previous: readonly T[] | undefined;
  /** By call; those that there are. */
  readonly replies: ReadonlyMap<string, T>;
}

export class StoredReplies {
  readonly #conversations: Conversations;
  /** By the id of the call. */
  readonly #places = new Map<string, { readonly index: number; readonly from: number }>();

  constructor(conversations: Conversations) {
    this.#conversations = conversations;
  }

  /** Take in the next record; the conversations hold it already. */
  add({ callId, index, storedFrom: from, replyDigest }: Completion): void {
    if (from !== undefined && replyDigest !== '') this.#places.set(callId, { index, from });
  }

  /** The digests of what a request names. */
  find({ previous, replies }: Refers): Found<string> {
    const found = new Map<string, string>();
    for (const call of replies) {
      const place = this.#places.get(call);
      if (place !== undefined) found.set(call, this.#conversations.replyOf(place.index));
    }
    return { previous: this.#conversationOf(previous), replies: found };
  }

  #conversationOf(call: string | undefined): string[] | undefined {
    const place = call === undefined ? undefined : this.#places.get(call);
    if (place === undefined) return undefined;
    const { index, from } = place;
    return [...this.#conversations.messagesOf(index).slice(from), this.#conversations.replyOf(index)];
  }
}
