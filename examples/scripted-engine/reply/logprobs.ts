// Logprobs that look like sampled ones and are the same for the same seed, prompt and reply.

export interface TokenLogprob {
  readonly id: number;
  readonly logprob: number;
}

/** Most tokens are nearly certain, some are not. */
const SURPRISE = 0.35;

export class Logprobs {
  readonly #salt: number;

  constructor(seed: number, promptIds: readonly number[]) {
    this.#salt = promptIds.reduce((hash, id) => mix(hash, id), mix(0x9e3779b9, seed));
  }

  /** Below 0, exact as a 32-bit float. */
  of(position: number, id: number): number {
    const surprise = -Math.log(this.#uniform(position, id)) * SURPRISE;
    return Math.fround(-(surprise ** 2) - 1e-4);
  }

  /** The `count` likeliest tokens at a position. */
  top(position: number, id: number, count: number, vocabulary: number): TokenLogprob[] {
    const logprob = this.of(position, id);
    const others = Math.log(-Math.expm1(logprob));
    const candidates = Array.from({ length: count }, (_, rank) => ({
      id: (id + 1 + Math.floor(this.#uniform(position, rank + vocabulary) * 997) + 997 * rank) % vocabulary,
      logprob: Math.fround(others - (rank + 1) * Math.LN2),
    }));
    return [{ id, logprob }, ...candidates].sort((a, b) => b.logprob - a.logprob).slice(0, count);
  }

  /** Above 0, to 1. */
  #uniform(position: number, id: number): number {
    return (mix(mix(this.#salt, position), id) + 1) / 2 ** 32;
  }
}

/** Murmur's finaliser over both. */
export function mix(hash: number, value: number): number {
  let mixed = Math.imul(hash ^ Math.imul(value + 0x7f4a7c15, 0x85ebca6b), 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
