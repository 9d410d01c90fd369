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
