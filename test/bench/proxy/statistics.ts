// Figures of samples.

export interface Distribution {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** NaN where there are no samples. */
export function distributionOf(samples: readonly number[]): Distribution {
  const sorted = Float64Array.from(samples).sort();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

export function medianOf(values: readonly number[]): number {
  const known = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const middle = known.length >> 1;
  if (known.length % 2 === 1) return known[middle] as number;
  return known.length === 0 ? NaN : ((known[middle - 1] as number) + (known[middle] as number)) / 2;
}

/** A median, and between what it lies with 95 % of all samples of as many values: no shape of their spread is assumed. */
export interface Interval {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export function medianWithin(values: readonly number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  // How many of the values lie below the true median is binomial, with a standard deviation of half the root.
  const off = Math.ceil(1.96 * 0.5 * Math.sqrt(sorted.length));
  const at = (index: number): number => sorted[Math.max(0, Math.min(sorted.length - 1, index))] ?? NaN;
  const middle = sorted.length / 2;
  return {
    median: medianOf(sorted),
    low: at(Math.floor(middle) - off),
    high: at(Math.ceil(middle) + off - 1),
  };
}
