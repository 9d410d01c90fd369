// What the LLM proxies of the mesh say of themselves, and whether all of them are where a pause wants them.

/** One proxy's word; the newest counts. */
export interface Peer {
  readonly nodeId: string;
  readonly bootId: string;
  /** Of the policy that it goes by. */
  readonly revision: number;
  readonly inFlight: number;
  readonly waiting: number;
}

export class Peers {
  readonly #heard = new Map<string, { peer: Peer; atMs: number }>();
  readonly #lostMs: number;
  readonly #roundMs: number;
  /** Words come in since then, the proxy's own among them. */
  #hearingSinceMs: number | undefined;
  #heardSelfMs = Number.NEGATIVE_INFINITY;

  /**
   * A proxy that was not heard of for `lostMs` is gone, and with it its connections to engines; every one that is there
   * is heard of within `roundMs`.
   */
  constructor(lostMs: number, roundMs: number) {
    this.#lostMs = lostMs;
    this.#roundMs = roundMs;
  }

  /** The proxy's own word has come back: what others say comes in, too. */
  hearSelf(nowMs: number): void {
    if (nowMs - this.#heardSelfMs > this.#roundMs) this.#hearingSinceMs = nowMs;
    this.#heardSelfMs = nowMs;
  }

  /** Whether all that there are have been heard of: not just after a start, nor while NATS is away. */
  complete(nowMs: number): boolean {
    if (this.#hearingSinceMs === undefined || nowMs - this.#heardSelfMs > this.#roundMs) return false;
    return nowMs - this.#hearingSinceMs >= this.#roundMs;
  }

  hear(peer: Peer, nowMs: number): void {
    this.#heard.set(peer.bootId, { peer, atMs: nowMs });
  }

  /** A proxy that has ended says so. */
  forget(bootId: string): void {
    this.#heard.delete(bootId);
  }

  alive(nowMs: number): Peer[] {
    for (const [bootId, { atMs }] of this.#heard) {
      if (nowMs - atMs > this.#lostMs) this.#heard.delete(bootId);
    }
    return [...this.#heard.values()].map(({ peer }) => peer);
  }

  /** Those that do not go by the revision yet or, where calls in flight matter, still have some. */
  behind(revision: number, drained: boolean, nowMs: number): Peer[] {
    return this.alive(nowMs).filter((peer) => peer.revision < revision || (drained && peer.inFlight > 0));
  }
}
