// The tables of the pipeline in docs/benchmarks.md.
import type { CloneFigures } from './clones.ts';
import type { Throughput } from './floor.ts';
import type { SlotsCase, SlotsFigures } from './slots.ts';
import type { MeshThroughput } from './throughput.ts';

/** Of the goals. */
const GOALS = {
  busyShare: 0.95,
  cloneMs: 2,
  prepareRatio: 5,
  meshCpuMs: 20,
  floorShare: 0.6,
  manyShare: 0.9,
};
/** Sessions between which throughput must hold. */
const [FEW, MANY] = [64, 1_000];

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, i) => (i === 0 ? '---' : '--:')), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const verdict = (isMet: boolean): string => (isMet ? 'yes' : '**no**');

/** How busy run slots were, case by case. */
export function slotsTable(results: readonly (readonly [SlotsCase, SlotsFigures])[]): string {
  const rows = results.map(([{ what, sessions, ready, evaluationsAhead }, { busyShare, gradedMs }]) => [
    what,
    `${sessions}`,
    `**${percent(busyShare)}**`,
    ready === 0 || evaluationsAhead === 0 ? '' : verdict(busyShare >= GOALS.busyShare),
    `${(gradedMs / 1_000).toFixed(2)} s`,
  ]);
  return table(
    [
      'prepare 3 s, run 1 s, grade 1 s, 2 run slots',
      'sessions',
      'run slots busy',
      '≥ 95 %',
      'run end to graded, p50',
    ],
    rows,
  );
}

export function clonesTable({ cloneP50Ms, cloneP99Ms, preparedCpuMs, clonedCpuMs }: CloneFigures): string {
  const ratio = preparedCpuMs / clonedCpuMs;
  return table(
    ['bubblewrap, prepare of 0.3 CPU-s and 200 files', 'goal', 'measured', 'met'],
    [
      [
        'a clone, ready to run, p50',
        '≤ 2 ms',
        `${cloneP50Ms.toFixed(2)} ms`,
        verdict(cloneP50Ms <= GOALS.cloneMs),
      ],
      ['the same, p99', '', `${cloneP99Ms.toFixed(2)} ms`, ''],
      ['CPU of a sandbox that is prepared', '', `${preparedCpuMs.toFixed(1)} ms`, ''],
      ['CPU of a clone, made and removed', '', `${clonedCpuMs.toFixed(2)} ms`, ''],
      ['prepared, times a clone', '≥ 5', ratio.toFixed(0), verdict(ratio >= GOALS.prepareRatio)],
    ],
  );
}

export interface BackendThroughput {
  readonly backend: string;
  readonly floor: Throughput;
  readonly mesh: readonly MeshThroughput[];
}

export function throughputTable(all: readonly BackendThroughput[]): string {
  const rows = all.flatMap(({ backend, floor, mesh }) => [
    [backend, 'no mesh', floor.perSecond.toFixed(1), '', floor.cpuMs.toFixed(1), ''],
    ...mesh.map(({ sessions, perSecond, cpuMs }) => [
      backend,
      `${sessions}`,
      perSecond.toFixed(1),
      sessions === 1 ? '' : percent(perSecond / floor.perSecond),
      cpuMs.toFixed(1),
      `**${(cpuMs - floor.cpuMs).toFixed(1)}**`,
    ]),
  ]);
  return table(
    ['backend', 'submitted at once', 'sessions/s', 'of the floor', 'CPU ms a session', 'of it the mesh'],
    rows,
  );
}

/** What the issue asks of a backend with many sessions. */
export function goalsTable({ backend, floor, mesh }: BackendThroughput): string {
  const of = (sessions: number) => mesh.find((one) => one.sessions === sessions);
  const [few, many] = [of(FEW), of(MANY)];
  if (few === undefined || many === undefined) return '';
  const [meshMs, share, kept] = [
    many.cpuMs - floor.cpuMs,
    many.perSecond / floor.perSecond,
    many.perSecond / few.perSecond,
  ];
  return table(
    [backend, 'goal', 'measured', 'met'],
    [
      [
        'CPU of the mesh a session at 1,000',
        '≤ 20 ms',
        `${meshMs.toFixed(1)} ms`,
        verdict(meshMs <= GOALS.meshCpuMs),
      ],
      ['sessions/s at 1,000, of the floor', '≥ 60 %', percent(share), verdict(share >= GOALS.floorShare)],
      ['sessions/s at 1,000, of those at 64', '≥ 90 %', percent(kept), verdict(kept >= GOALS.manyShare)],
    ],
  );
}

/** Own CPU and memory of each process, at the most sessions. */
export function processesTable({ mesh }: BackendThroughput): string {
  const [first, last] = [mesh[0], mesh.at(-1)];
  if (first === undefined || last === undefined || first === last) return '';
  const sessions = mesh.slice(1).reduce((sum, one) => sum + one.sessions, 0);
  const sum = (values: ReadonlyMap<string, number>): number =>
    [...values.values()].reduce((a, b) => a + b, 0);
  const row = (name: string, pick: (values: ReadonlyMap<string, number>) => number): string[] => [
    name,
    pick(last.ownCpuMs).toFixed(2),
    pick(first.residentMiB).toFixed(0),
    pick(last.residentMiB).toFixed(0),
  ];
  return table(
    ['', `own CPU ms a session at ${last.sessions}`, 'resident MiB', `after ${sessions} more sessions`],
    [
      ...[...last.ownCpuMs.keys()].map((name) => row(name, (values) => values.get(name) ?? 0)),
      row('all', sum),
    ],
  );
}
