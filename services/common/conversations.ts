// Which messages each recorded call was sent, as what it takes from an earlier call and what is new: the digests of a
// session are stored once each, however long it is. Pure.

/** A call's messages: the first `baseCount` of the base's conversation (its messages, then its reply), then `fresh`. */
export interface Turn {
  /** Index of the base call, -1 for none. */
  readonly baseIndex: number;
  readonly baseCount: number;
  readonly fresh: readonly string[];
  /** Digest of the reply; empty where it was not delivered. */
  readonly reply: string;
}

export class Conversations {
  readonly #turns: Turn[] = [];
  readonly #lengths: number[] = [];

  /** Add the next call. Throws RangeError when it takes more than its base has. */
  add(turn: Turn): void {
    if (turn.baseCount > this.#available(turn.baseIndex)) {
      throw new RangeError(
        `takes ${turn.baseCount} messages from call ${turn.baseIndex}, which has not as many`,
      );
    }
    this.#turns.push(turn);
    this.#lengths.push(turn.baseCount + turn.fresh.length);
  }

  /** Digests of a call's messages, in order. */
  messagesOf(index: number): string[] {
    const parts: (readonly string[])[] = [];
    let wanted = this.#lengths[index] ?? 0;
    for (let at = index; wanted > 0; ) {
      const turn = this.#turns[at] as Turn;
      parts.push(turn.fresh.slice(0, Math.max(0, wanted - turn.baseCount)));
      wanted = Math.min(wanted, turn.baseCount);
      at = turn.baseIndex;
      const sent = this.#lengths[at] ?? 0;
      if (wanted <= sent) continue;
      parts.push([(this.#turns[at] as Turn).reply]);
      wanted = sent;
    }
    return parts.reverse().flat();
  }

  /** Digest of a call's reply; empty where it was not delivered. */
  replyOf(index: number): string {
    return this.#turns[index]?.reply ?? '';
  }

  #available(index: number): number {
    if (index < 0) return 0;
    const turn = this.#turns[index];
    if (turn === undefined) return 0;
    return (this.#lengths[index] ?? 0) + (turn.reply === '' ? 0 : 1);
  }
}
