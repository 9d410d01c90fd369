// The tables of the pipeline in docs/benchmarks.md.
import { medianOf } from '../proxy/statistics.ts';
import type { CloneFigures } from './clones.ts';
import type { Throughput } from './floor.ts';
import type { Look } from './memory.ts';
import type { Cpu } from './meter.ts';
import type { Pair } from './rounds.ts';
import type { SlotsCase, SlotsFigures } from './slots.ts';

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
  /** Of the floor, and so it is of each number of sessions: the median of what was measured. */
  readonly pairs: readonly Pair[];
  /** Sessions before the first pair. */
  readonly warmUp: number;
}

const ofSize = (pairs: readonly Pair[], size: number): Pair[] =>
  pairs.filter(({ mesh }) => mesh.sessions === size);

const ms = (value: number): string => value.toFixed(1);

export function throughputTable({ backend, pairs }: BackendThroughput): string {
  const floor = (pick: (one: Throughput) => number): number =>
    medianOf(pairs.map((pair) => pick(pair.floor)));
  const sizes = [...new Set(pairs.map(({ mesh }) => mesh.sessions))];
  const row = (size: number): string[] => {
    const of = (pick: (pair: Pair) => number): number => medianOf(ofSize(pairs, size).map(pick));
    return [
      ...[backend, `${size}`, of(({ mesh }) => mesh.perSecond).toFixed(1)],
      size === 1 ? '' : percent(of(shareOfFloor)),
      ms(of(({ mesh }) => mesh.cpu.own)),
      `**${ms(of(ownBeyond))}**`,
      ms(of(({ mesh }) => othersMs(mesh))),
      ms(of(({ mesh, floor }) => othersMs(mesh) - othersMs(floor))),
    ];
  };
  return table(
    [
      ...['backend', 'submitted at once', 'sessions/s', 'of the floor'],
      ...['own CPU ms a session', 'beyond the floor', "sandboxes' CPU ms", 'beyond the floor'],
    ],
    [
      [
        ...[backend, 'no mesh', floor(({ perSecond }) => perSecond).toFixed(1), ''],
        ...[ms(floor(({ cpu }) => cpu.own)), '', ms(floor(othersMs)), ''],
      ],
      ...sizes.map(row),
    ],
  );
}

const shareOfFloor = ({ mesh, floor }: Pair): number => mesh.perSecond / floor.perSecond;
const ownBeyond = ({ mesh, floor }: Pair): number => mesh.cpu.own - floor.cpu.own;
const othersMs = ({ cpu }: Throughput): number => cpu.sandboxes + cpu.engine;

/** What the issue asks of a backend with many sessions. */
export function goalsTable({ backend, pairs }: BackendThroughput): string {
  const [few, many] = [ofSize(pairs, FEW), ofSize(pairs, MANY)];
  if (few.length === 0 || many.length === 0) return '';
  const perSecond = (some: readonly Pair[]): number => medianOf(some.map(({ mesh }) => mesh.perSecond));
  const [meshMs, share] = [medianOf(many.map(ownBeyond)), medianOf(many.map(shareOfFloor))];
  const kept = perSecond(many) / perSecond(few);
  return table(
    [backend, 'goal', 'measured', 'met'],
    [
      [
        'CPU of services and nats-server a session at 1,000, beyond the floor',
        '≤ 20 ms',
        `${ms(meshMs)} ms`,
        verdict(meshMs <= GOALS.meshCpuMs),
      ],
      ['sessions/s at 1,000, of the floor', '≥ 60 %', percent(share), verdict(share >= GOALS.floorShare)],
      ['sessions/s at 1,000, of those at 64', '≥ 90 %', percent(kept), verdict(kept >= GOALS.manyShare)],
    ],
  );
}

/** Where containers are an engine's: what it takes beside them, in the floor and with each number of sessions. */
export function engineTable({ backend, pairs }: BackendThroughput): string {
  const row = (what: string, some: readonly Throughput[]): string[] => {
    const of = (pick: (cpu: Cpu) => number): string => ms(medianOf(some.map(({ cpu }) => pick(cpu))));
    return [what, of(({ own }) => own), of(({ engine }) => engine), of(({ sandboxes }) => sandboxes)];
  };
  const floors = pairs.map(({ floor }) => floor);
  const sizes = [...new Set(pairs.map(({ mesh }) => mesh.sessions))];
  const meshes = (size: number): Throughput[] => ofSize(pairs, size).map(({ mesh }) => mesh);
  return table(
    ['CPU ms a session', 'own', `${backend}: daemons, monitors and runtimes`, 'in containers'],
    [row('no mesh', floors), ...sizes.map((size) => row(`${size} at once`, meshes(size)))],
  );
}

/** Own CPU and memory of each process, at the most sessions. */
export function processesTable({ pairs, warmUp }: BackendThroughput): string {
  const most = Math.max(...pairs.map(({ mesh }) => mesh.sessions));
  const largest = ofSize(pairs, most);
  const first = pairs.findIndex(({ mesh }) => mesh.sessions === most);
  // At rest, after the first time with so many, and at the end.
  const looks = [...new Set([first - 1, first, pairs.length - 1])].filter((i) => i >= 0);
  const ended = (last: number): number =>
    pairs.slice(0, last + 1).reduce((sum, { mesh }) => sum + mesh.sessions, warmUp);
  const cpu = (name: string): number => medianOf(largest.map(({ mesh }) => mesh.ownCpuMs.get(name) ?? 0));
  const resident = (look: number, name: string): number => pairs[look]?.mesh.residentMiB.get(name) ?? 0;
  const names = [...(pairs[0]?.mesh.ownCpuMs.keys() ?? [])];
  const sum = (of: (name: string) => number): number => names.reduce((all, name) => all + of(name), 0);
  return table(
    ['', `own CPU ms a session at ${most}`, ...looks.map((look) => `own MiB after ${ended(look)}`)],
    [
      ...names.map((name) => [
        ...[name, cpu(name).toFixed(2)],
        ...looks.map((look) => resident(look, name).toFixed(0)),
      ]),
      [
        ...['all', sum(cpu).toFixed(2)],
        ...looks.map((look) => sum((name) => resident(look, name)).toFixed(0)),
      ],
    ],
  );
}

/** What each process has more after the last look than after the first one. */
export function memoryTable(looks: readonly Look[]): string {
  const [first, last] = [looks[0], looks.at(-1)];
  if (first === undefined || last === undefined || first === last) return '';
  const sum = (values: ReadonlyMap<string, number>): number =>
    [...values.values()].reduce((all, one) => all + one, 0);
  const row = (name: string, of: (values: ReadonlyMap<string, number>) => number): string[] => [
    name,
    ...looks.map(({ inUse }) => (of(inUse) / (1 << 20)).toFixed(1)),
    `**${((of(last.inUse) - of(first.inUse)) / (last.ended - first.ended) / 1024).toFixed(2)}**`,
    ...looks.map(({ residentMiB }) => of(residentMiB).toFixed(0)),
  ];
  return table(
    [
      '',
      ...looks.map(({ ended }) => `in use, MiB, after ${ended}`),
      'kept KiB a session',
      ...looks.map(({ ended }) => `own MiB resident at ${ended}`),
    ],
    [...[...first.inUse.keys()].map((name) => row(name, (values) => values.get(name) ?? 0)), row('all', sum)],
  );
}
