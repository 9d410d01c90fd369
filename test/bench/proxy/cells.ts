// What is measured of each candidate, and how its figures come from what the load saw.
import type { EnginePace } from './engine.ts';
import type { GrowingPlan, Outcome, Plan, SmallPlan } from './load.ts';

export type Figures = Readonly<Record<string, number>>;

/** What one measurement gives beside the outcomes of its plans. */
export interface Measured {
  readonly outcomes: readonly Outcome[];
  /** CPU of the candidate, and of nats-server where it has one. */
  readonly cpuMs: number;
  readonly residentMiB: number;
}

/** A plan before it is known whom it calls. */
export type Sketch = Omit<Plan, 'port' | 'paths' | 'key'> & { readonly sessions: number };

export interface Cell {
  readonly name: string;
  readonly pace?: EnginePace;
  readonly plans: readonly Sketch[];
  readonly figures: (measured: Measured) => Figures;
}

const FOR_EVER = 1e9;
const SMALL_BYTES = 2_048;
const CALLS_PER_SESSION = 50;
/** 1.3 to 1.7 MB: 1.5 MB in the middle of the session. */
const LATE: GrowingPlan = { kind: 'growing', startBytes: 1_250_000, turnBytes: 3_000, turns: 100 };
const LATE_SESSIONS = 4;

const small: SmallPlan = { kind: 'small', bytes: SMALL_BYTES, callsPerPath: CALLS_PER_SESSION };
const stream: SmallPlan = { kind: 'stream', bytes: SMALL_BYTES, callsPerPath: FOR_EVER };
const closed = { ratePerS: 0, rampMs: 0, callsEach: FOR_EVER };

const errorsOf = ({ outcomes }: Measured): number =>
  outcomes.reduce((sum, { errors }) => sum + Object.values(errors).reduce((a, b) => a + b, 0), 0);
const first = ({ outcomes }: Measured): Outcome => outcomes[0] as Outcome;

const callFigures = (measured: Measured): Figures => {
  const { latencyMs, calls, wallMs } = first(measured);
  return {
    p50: latencyMs.p50,
    p99: latencyMs.p99,
    perS: (calls / wallMs) * 1000,
    cpu: measured.cpuMs / calls,
    errors: errorsOf(measured),
  };
};

const smallCell = (connections: number, durationMs: number): Cell => ({
  name: `c${connections}`,
  plans: [{ ...closed, connections, sessions: Math.max(256, connections * 4), body: small, durationMs }],
  figures: callFigures,
});

const lateCell = (durationMs: number): Cell => ({
  name: 'late',
  plans: [{ ...closed, connections: 1, sessions: LATE_SESSIONS, body: LATE, durationMs }],
  figures: callFigures,
});

/** Small calls by the clock while late turns go one after another. */
const besideCell = (durationMs: number): Cell => ({
  name: 'beside',
  plans: [
    { ...closed, ratePerS: 100, connections: 10, sessions: 100, body: small, durationMs },
    { ...closed, connections: 1, sessions: LATE_SESSIONS, body: LATE, durationMs },
  ],
  figures: callFigures,
});

const streamFigures = (measured: Measured): Figures => {
  const { calls, firstChunkMs, chunkDelayMs, chunks } = first(measured);
  return {
    first50: firstChunkMs.p50,
    first99: firstChunkMs.p99,
    delay50: chunkDelayMs.p50,
    delay99: chunkDelayMs.p99,
    cpu: (measured.cpuMs / chunks) * 1000,
    resident: measured.residentMiB,
    complete: calls,
    errors: errorsOf(measured),
  };
};

const streamCell = (name: string, streams: number, pace: EnginePace): Cell => ({
  name,
  pace,
  plans: [
    {
      ...closed,
      connections: streams,
      sessions: 64,
      body: stream,
      durationMs: FOR_EVER,
      rampMs: 1,
      callsEach: 1,
    },
  ],
  figures: streamFigures,
});

/** All cells; a quick run takes them shorter. */
export const cellsOf = (quick: boolean): readonly Cell[] => [
  smallCell(1, quick ? 1_500 : 4_000),
  smallCell(16, quick ? 1_500 : 4_000),
  smallCell(64, quick ? 1_500 : 4_000),
  lateCell(quick ? 2_000 : 5_000),
  besideCell(quick ? 3_000 : 8_000),
  streamCell('slow500', 500, { chunks: quick ? 50 : 200, gapMs: 20 }),
  streamCell('open1000', 1_000, { chunks: quick ? 4 : 10, gapMs: 1_000 }),
];

/** Code is compiled well only when it has run some ten thousand times: nothing is measured before, but for the slow. */
export const warmUpsOf = (quick: boolean): readonly Cell[] => {
  const calls = smallCell(16, quick ? 5_000 : 40_000);
  const streams = streamCell('warm-up', 64, { chunks: 100, gapMs: 10 });
  return [
    { ...calls, plans: calls.plans.map((plan) => ({ ...plan, callsEach: quick ? 200 : 4_000 })) },
    {
      ...streams,
      plans: streams.plans.map((plan) => ({ ...plan, callsEach: quick ? 2 : 8, durationMs: 10_000 })),
    },
  ];
};
