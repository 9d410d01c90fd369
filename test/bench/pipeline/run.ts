// npm run bench:pipeline: how busy run slots are, what a clone costs, how many sessions a second. Writes docs/benchmarks.md.
//   --parts A,B       of slots, clones, process, bubblewrap, docker
//   --quick           fewer sessions, and nothing is written
//   --sizes N,M       sessions submitted at once; then nothing is written
//   --case N,M        cases of slots, from 0; then nothing is written
//   --profile DIR     the services write V8 CPU profiles there, which costs some CPU; then nothing is written
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { startEngine } from '../../support/mesh.ts';
import { curlTask } from '../../support/tasks.ts';
import { busyMs } from '../proxy/processes.ts';
import { writePart } from '../proxy/report.ts';
import { aboutMachine, say } from '../scheduler/machine.ts';
import { openBareNode } from './bare-node.ts';
import { measureClones } from './clones.ts';
import { measureFloor } from './floor.ts';
import { usedMs } from './meter.ts';
import {
  type BackendThroughput,
  clonesTable,
  goalsTable,
  processesTable,
  slotsTable,
  throughputTable,
} from './report.ts';
import { measureSlots, type SlotsCase, type SlotsFigures } from './slots.ts';
import { measureMesh } from './throughput.ts';

const { values: flags } = parseArgs({
  options: {
    parts: { type: 'string', default: 'slots,clones,process,bubblewrap,docker' },
    quick: { type: 'boolean', default: false },
    sizes: { type: 'string', default: '' },
    profile: { type: 'string', default: '' },
    case: { type: 'string', default: '' },
  },
});
/** Figures for the document. */
const IS_WHOLE = !flags.quick && flags.sizes === '' && flags.profile === '' && flags.case === '';
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
/** Sessions submitted at once, and those of the floor. */
const SIZES: Readonly<Record<string, { readonly sizes: readonly number[]; readonly floor: number }>> = {
  process: { sizes: flags.quick ? [1, 64] : [1, 64, 256, 1_000], floor: 256 },
  bubblewrap: { sizes: flags.quick ? [1, 64] : [1, 64, 256, 1_000], floor: 256 },
  // Five minutes.
  docker: { sizes: flags.quick ? [1] : [1, 64, 256, 1_000], floor: flags.quick ? 24 : 64 },
};
const AT_ONCE = 8;

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
  const { sizes: all = [], floor: sessions = 0 } = SIZES[backend] ?? {};
  const sizes = flags.sizes === '' ? all : flags.sizes.split(',').map(Number);
  const docker = backend === 'docker' ? await startDocker() : undefined;
  await using _docker = docker;
  const runtime = { backend, ...(docker && { image: docker.image }) };
  const dockerSocket = docker?.socket;
  // The engine of docker starts containers, and is none of ours: there it is all that the machine does.
  const cpuMs = docker ? busyMs : usedMs;
  const command = curlTask('floor', 1).harness?.command?.command ?? '';
  const floor = await withEngine(async (engineUrl) => {
    await using node = await openBareNode({ engineUrl, ...(dockerSocket && { dockerSocket }) });
    const options = { atOnce: AT_ONCE, cpuMs: () => cpuMs([process.pid], node.folder) };
    await measureFloor(node, runtime, command, { ...options, sessions: AT_ONCE });
    return await measureFloor(node, runtime, command, { ...options, sessions });
  });
  const node = dockerSocket && { docker: { socket: dockerSocket, pull: 'never' } };
  const nodeFlags = flags.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${flags.profile}`];
  const mesh = await measureMesh({ runtime, sizes, cpuMs, nodeFlags, ...(node && { node }) });
  return { backend, floor, mesh };
}

/** Loaded only where it is wanted: it looks for an engine, and installs it. */
async function startDocker() {
  const { PROGRAMS_IMAGE, startDockerWithPrograms } = await import('../../support/docker.ts');
  const docker = await startDockerWithPrograms({ remapped: true });
  const dispose = async (): Promise<void> => await docker[Symbol.asyncDispose]();
  return { socket: docker.socket, image: PROGRAMS_IMAGE, [Symbol.asyncDispose]: dispose };
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
if (PARTS.has('clones')) tell('clones', [clonesTable(await withEngine(measureClones))]);
for (const backend of Object.keys(SIZES).filter((name) => PARTS.has(name))) {
  const figures = await throughput(backend);
  tell(backend, [throughputTable([figures]), goalsTable(figures), processesTable(figures)]);
}
