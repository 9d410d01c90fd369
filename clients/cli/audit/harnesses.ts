// The operator's daily number: which part of what a harness had sampled reaches the trainer. Pure.
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';

export interface HarnessRow {
  readonly harness: string;
  readonly sessions: number;
  /** Of them without a trajectory. */
  readonly without_trajectory: number;
  readonly sampled: number;
  readonly trained: number;
  /** trained / sampled; null where nothing was sampled. */
  readonly delivered: number | null;
  /** Masked ids by reason. */
  readonly masked: Readonly<Record<string, number>>;
  readonly usage_mismatches: number;
}

/** One row a harness, by name. */
export function harnessRows(sessions: readonly Session[]): HarnessRow[] {
  const byHarness = Map.groupBy(sessions, ({ harness }) => harness);
  return [...byHarness].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, those]) => rowOf(name, those));
}

function rowOf(harness: string, sessions: readonly Session[]): HarnessRow {
  const stats = sessions.flatMap((session) => session.stats ?? []);
  const sum = (numbers: readonly (bigint | number)[]): number =>
    numbers.reduce<number>((total, one) => total + Number(one), 0);
  const sampled = sum(stats.map(({ sampledTokens }) => sampledTokens));
  const trained = sum(stats.map(({ trainedTokens }) => trainedTokens));
  const masked = Map.groupBy(
    stats.flatMap(({ maskedTokens }) => Object.entries(maskedTokens)),
    ([reason]) => reason,
  );
  return {
    harness,
    sessions: sessions.length,
    without_trajectory: sessions.length - stats.length,
    sampled,
    trained,
    delivered: sampled === 0 ? null : trained / sampled,
    masked: Object.fromEntries(
      [...masked].sort().map(([reason, all]) => [reason, sum(all.map(([, count]) => count))]),
    ),
    usage_mismatches: sum(stats.map(({ usageMismatches }) => usageMismatches)),
  };
}

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `90m`, `24h` or `7d` in milliseconds; undefined for anything else. */
export function spanMs(text: string): number | undefined {
  const [, count, unit] = /^(\d+)([mhd])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(count) * UNITS[unit as keyof typeof UNITS];
}
