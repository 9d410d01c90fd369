// What a process counts and shows at `/metrics`, in the text form of Prometheus. A process is one service, so that its counts are
// its process's; what is looked at only when somebody asks has a source in each instance of the service.
import { createRequire } from 'node:module';
import type * as Library from 'prom-client';

const require = createRequire(import.meta.url);
/** Each part by itself: all of it loads OpenTelemetry, which takes 40 ms of CPU at each start. */
const {
  Registry,
  Counter,
  Gauge,
  Histogram,
}: Pick<typeof Library, 'Registry' | 'Counter' | 'Gauge' | 'Histogram'> = {
  Registry: require('prom-client/lib/registry.js'),
  Counter: require('prom-client/lib/counter.js'),
  Gauge: require('prom-client/lib/gauge.js'),
  Histogram: require('prom-client/lib/histogram.js'),
};

const registry = new Registry();
const registers = [registry];

export const METRICS_TYPE: string = registry.contentType;

/** As Prometheus reads it. */
export const metricsText = (): Promise<string> => registry.metrics();

export interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** What this process may show, by the modules that it has loaded. */
export const described = (): readonly Described[] => registry.getMetricsAsArray() as unknown as Described[];

/** It only grows; `name` ends in `_total`. */
export const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
  new Counter<L>({ name, help, labelNames, registers });

/** Values of a label that somebody's plug-in may choose, of which Prometheus would keep every one. */
const CHOSEN_VALUES_MAX = 64;

/** The first values as they are, all later ones as `other`. */
export function chosen(): (value: string) => string {
  const shown = new Set<string>();
  return (value) => {
    if (shown.size < CHOSEN_VALUES_MAX) shown.add(value);
    return shown.has(value) ? value : 'other';
  };
}

/** A count that something else keeps. */
export const countOf = (name: string, help: string, read: () => number): void =>
  void new Counter({
    ...{ name, help, registers },
    collect() {
      this.reset();
      this.inc(read());
    },
  });

/** How long something took, or how much it was; `name` ends in its unit. */
export const histogram = <L extends string>(
  name: string,
  help: string,
  buckets: readonly number[],
  labelNames: readonly L[] = [],
) => new Histogram<L>({ name, help, labelNames, buckets: [...buckets], registers });

/** Seconds, for what takes from some milliseconds to minutes. */
export const CALL_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;
/** Seconds, for what takes from a part of a second to hours. */
export const STAGE_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 1_800, 3_600, 14_400] as const;

type Labels<L extends string> = Readonly<Record<L, string>>;
/** Values as they are now, each with its labels. */
export type Reading<L extends string> = () => Iterable<readonly [labels: Labels<L>, value: number]>;

export interface Looked<L extends string> {
  /** One more instance to look at, until it is disposed. Equal labels add up. */
  from(reading: Reading<L>): Disposable;
}

/** What is looked at when somebody asks. */
export function gauge<L extends string>(
  name: string,
  help: string,
  labelNames: readonly L[] = [],
): Looked<L> {
  const readings = new Set<Reading<L>>();
  new Gauge<L>({
    ...{ name, help, labelNames, registers },
    collect() {
      this.reset();
      for (const reading of readings) for (const [labels, value] of reading()) this.inc(labels, value);
    },
  });
  return {
    from(reading) {
      readings.add(reading);
      return { [Symbol.dispose]: () => void readings.delete(reading) };
    },
  };
}
