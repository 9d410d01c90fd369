// npm run bench:pipeline: how busy run slots are, what a clone costs, how many sessions a second. Writes docs/benchmarks.md.
//   --parts A,B       of slots, clones, memory, process, bubblewrap, docker, podman
//   --quick           fewer sessions, and nothing is written
//   --sizes N,M       sessions submitted at once; then nothing is written
//   --rounds N        how often all sizes; then nothing is written
//   --case N,M        cases of slots, from 0; then nothing is written
//   --profile DIR     the services write V8 CPU profiles there, which costs some CPU; then nothing is written
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEngine } from '../../support/mesh.ts';
import { curlTask } from '../../support/tasks.ts';
import { writePart } from '../proxy/report.ts';
import { aboutMachine, say } from '../scheduler/machine.ts';
import { measureClones } from './clones.ts';
import { openFloor } from './floor.ts';
import { measureMemory } from './memory.ts';
import { groupsMeter } from './meter.ts';
import {
  type BackendThroughput,
  clonesTable,
  engineTable,
  goalsTable,
  memoryTable,
  processesTable,
  slotsTable,
  throughputTable,
} from './report.ts';
import { measureRounds, type RoundsOptions } from './rounds.ts';
import { measureSlots, type SlotsCase, type SlotsFigures } from './slots.ts';
import { openMesh } from './throughput.ts';

const { values: flags } = parseArgs({
  options: {
    parts: { type: 'string', default: 'slots,clones,memory,process,bubblewrap,docker,podman' },
    quick: { type: 'boolean', default: false },
    sizes: { type: 'string', default: '' },
    rounds: { type: 'string', default: '' },
    profile: { type: 'string', default: '' },
    case: { type: 'string', default: '' },
  },
});
/** Figures for the document. */
const IS_WHOLE =
  !flags.quick && [flags.sizes, flags.rounds, flags.profile, flags.case].every((one) => one === '');
const PARTS = new Set(flags.parts.split(','));
const DOCUMENT = join(import.meta.dirname, '../../../docs/benchmarks.md');
const SLOT_SESSIONS = flags.quick ? 8 : 24;
/** Without ready slots a session takes four seconds of a slot. */
const FEWER = SLOT_SESSIONS / 2;

const CASES: readonly SlotsCase[] = [
  { what: 'each prepared, none ahead (`max_ready: 0`)', ready: 0, layers: false, sessions: FEWER },
  { what: 'each prepared, ahead of the runs', ready: 2, layers: false, sessions: SLOT_SESSIONS },
  { what: 'clones, none ahead (`max_ready: 0`)', ready: 0, layers: true, sessions: SLOT_SESSIONS },
  { what: 'clones, ahead of the runs', ready: 2, layers: true, sessions: SLOT_SESSIONS },
  {
    ...{ what: 'evaluations prepared 3 s each, too, none ahead (`max_postrun_ready: 0`)' },
    ...{ ready: 2, layers: false, sessions: FEWER, evaluationsAhead: 0 },
  },
  {
    ...{ what: 'the same, ahead of them (`max_postrun_ready: 8`)' },
    ...{ ready: 2, layers: false, sessions: SLOT_SESSIONS, evaluationsAhead: 8 },
  },
];
const QUICK: RoundsOptions = { sizes: [1, 64], rounds: 1, floor: 128, warmUp: 32 };
const FEW: RoundsOptions = { sizes: [1], rounds: 1, floor: 24, warmUp: 32 };
/** Sessions submitted at once, how often all of them, and those of a floor. */
const SIZES: Readonly<Record<string, RoundsOptions>> = {
  process: flags.quick ? QUICK : { sizes: [1, 64, 256, 1_000], rounds: 2, floor: 128, warmUp: 128 },
  bubblewrap: flags.quick ? QUICK : { sizes: [1, 64, 256, 1_000], rounds: 2, floor: 128, warmUp: 128 },
  // Eight minutes.
  docker: flags.quick ? FEW : { sizes: [1, 64, 256, 1_000], rounds: 1, floor: 64, warmUp: 128 },
  podman: flags.quick ? FEW : { sizes: [1, 64], rounds: 1, floor: 64, warmUp: 32 },
};
const IN_CONTAINERS = ['docker', 'podman'];
const AT_ONCE = 8;
/** Sessions that have ended when memory is looked at. */
const MEMORY_LOOKS = flags.quick ? [100, 200] : [1_000, 4_000];

const numbers = (list: string): number[] => list.split(',').map(Number);

async function withEngine<T>(use: (url: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-bench-engine-'));
  const children: Parameters<typeof startEngine>[2] = new Map();
  try {
    return await use(await startEngine(folder, {}, children));
  } finally {
    for (const child of children.values()) child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function throughput(backend: string): Promise<BackendThroughput> {
  const usual = SIZES[backend] ?? QUICK;
  const rounds = Number(flags.rounds || usual.rounds);
  const sizes = flags.sizes === '' ? usual.sizes : numbers(flags.sizes);
  const engine = IN_CONTAINERS.includes(backend) ? await startEngineOf(backend) : undefined;
  await using _engine = engine;
  const runtime = { backend, ...(engine && { image: engine.image }) };
  const meter = engine?.meter ?? groupsMeter;
  const command = curlTask('floor', 1).harness?.command?.command ?? '';
  const nodeFlags = flags.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${flags.profile}`];
  const pairs = await withEngine(async (engineUrl) => {
    const loop = { engineUrl, runtime, command, atOnce: AT_ONCE, engines: engine?.node ?? {} };
    await using floor = await openFloor(loop, meter);
    await using mesh = await openMesh({ runtime, meter, engineUrl, nodeFlags, node: engine?.node ?? {} });
    return await measureRounds(floor, mesh, { ...usual, sizes, rounds });
  });
  return { backend, pairs, warmUp: usual.warmUp };
}

/** Loaded only where it is wanted: it looks for an engine, and installs it. */
async function startEngineOf(backend: string) {
  const { startContainerEngine } = await import('./container-engine.ts');
  return await startContainerEngine(backend);
}

function tell(part: string, tables: readonly string[]): void {
  const text = [`${aboutMachine()}.`, ...tables.filter((one) => one !== '')].join('\n\n');
  say(`\n${text}`);
  if (IS_WHOLE) writePart(DOCUMENT, `pipeline ${part}`, text);
}

if (PARTS.has('slots')) {
  const results: [SlotsCase, SlotsFigures][] = [];
  for (const one of CASES.filter((_, i) => flags.case === '' || flags.case.split(',').includes(`${i}`))) {
    const figures = await measureSlots(one);
    results.push([one, figures]);
    say(`${one.what}: ${(figures.busyShare * 100).toFixed(1)} %, graded after ${figures.gradedMs} ms`);
  }
  tell('slots', [slotsTable(results)]);
}
if (PARTS.has('memory')) {
  tell('memory', [
    memoryTable(await measureMemory(flags.sizes === '' ? MEMORY_LOOKS : numbers(flags.sizes))),
  ]);
}
if (PARTS.has('clones')) tell('clones', [clonesTable(await withEngine(measureClones))]);
for (const backend of Object.keys(SIZES).filter((name) => PARTS.has(name))) {
  const figures = await throughput(backend);
  tell(backend, [
    ...[throughputTable(figures), goalsTable(figures)],
    ...[IN_CONTAINERS.includes(backend) ? engineTable(figures) : '', processesTable(figures)],
  ]);
}
