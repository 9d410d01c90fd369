// Differences of recorded logprobs and those of the engine that scores the same ids again, as a distribution. Pure.

/** One trained id. */
export interface Scored {
  readonly callId: string;
  readonly trace: number;
  /** In what the call sampled. */
  readonly index: number;
  readonly recorded: number;
  readonly again: number;
}

/** Of absolute differences in nats. */
export interface Distribution {
  readonly ids: number;
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  /** Where the largest one is. */
  readonly worst: Scored & { readonly sessionId: string };
}

export class Differences {
  readonly #all: number[] = [];
  #worst: Distribution['worst'] | undefined;

  add(sessionId: string, scored: Scored): void {
    const difference = differenceOf(scored);
    if (this.#worst === undefined || difference > differenceOf(this.#worst)) {
      this.#worst = { sessionId, ...scored };
    }
    this.#all.push(difference);
  }

  /** Undefined where nothing was added. */
  distribution(): Distribution | undefined {
    if (this.#worst === undefined) return undefined;
    const sorted = Float64Array.from(this.#all).sort();
    const at = (part: number): number => sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
    return {
      ids: sorted.length,
      mean: sorted.reduce((sum, one) => sum + one, 0) / sorted.length,
      p50: at(0.5),
      p90: at(0.9),
      p99: at(0.99),
      max: at(1),
      worst: this.#worst,
    };
  }
}

/** One that the engine cannot score differs beyond any bound. */
const differenceOf = ({ recorded, again }: Scored): number => {
  const difference = Math.abs(recorded - again);
  return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
};
