// npm run bench:stream: stored trajectories to a Python consumer that touches every array, beside JSON over HTTP, and
// memory over a billion tokens. Writes docs/benchmarks.md.
//   --parts A,B      of 16384, 1024 (tokens a trace) and memory
//   --quick          fewer groups, and nothing is written
//   --profile DIR    CPU profiles of the reconstructor
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writePart } from '../proxy/report.ts';
import { aboutMachine, say } from '../scheduler/machine.ts';
import { type Consumed, consume } from './consume.ts';
import { startStreamMesh } from './mesh.ts';
import { groupsAsJson, measurePeer, PEERS } from './peers.ts';
import { costTable, type Measured, memoryTable, type Round, rateTable } from './report.ts';
import type { Shape } from './traces.ts';

const { values: flags } = parseArgs({
  options: {
    parts: { type: 'string', default: '16384,1024,memory' },
    quick: { type: 'boolean', default: false },
    profile: { type: 'string', default: '' },
  },
});
const PARTS = flags.parts.split(',');
const DOCUMENT = join(import.meta.dirname, '../../../docs/benchmarks.md');
const NODE_FLAGS = flags.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${flags.profile}`];
const JSON_GROUPS_DISTINCT = 8;
const ROUNDS = flags.quick ? 1 : 5;

interface Plan {
  readonly shape: Shape;
  /** Groups before those that are measured. A stream goes on for hours: what its first second costs the compiler is not what
   * it costs. */
  readonly warm: number;
  readonly groups: number;
  readonly jsonGroups: number;
}

const LONG: Shape = { tokens: 16_384, sessions: 8, distinct: 512 };
const SHORT: Shape = { tokens: 1_024, sessions: 8, distinct: 4_096 };
const PLANS: Readonly<Record<string, Plan>> = {
  16384: { shape: LONG, warm: 1_000, groups: flags.quick ? 300 : 1_500, jsonGroups: flags.quick ? 5 : 40 },
  1024: {
    shape: SHORT,
    warm: flags.quick ? 1_000 : 8_000,
    groups: flags.quick ? 2_000 : 5_500,
    jsonGroups: flags.quick ? 60 : 600,
  },
};
const MEMORY_TOKENS = flags.quick ? 1e8 : 1e9;

async function stream(
  { shape, warm, groups }: Omit<Plan, 'jsonGroups'>,
  layout: keyof Round['stream'],
): Promise<Consumed> {
  await using mesh = await startStreamMesh(NODE_FLAGS);
  await mesh.fill('bench', shape, groups + warm);
  return await consume('consumer.py', [mesh.url, 'trainer', 'bench', warm, groups, layout], mesh.pids);
}

async function measure(plan: Plan): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-bench-json-'));
  try {
    const file = join(folder, 'groups.json');
    writeFileSync(file, groupsAsJson(plan.shape, JSON_GROUPS_DISTINCT));
    const rounds: Round[] = [];
    while (rounds.length < ROUNDS) rounds.push(await round(plan, file));
    return { shape: plan.shape, rounds };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function round(plan: Plan, file: string): Promise<Round> {
  const peers: Record<string, Consumed> = {};
  for (const name of Object.keys(PEERS) as (keyof typeof PEERS)[]) {
    peers[name] = await measurePeer(name, file, plan.jsonGroups);
  }
  return { stream: { columns: await stream(plan, 'columns'), traces: await stream(plan, 'traces') }, peers };
}

/** A part of the document is written when it was measured whole. */
function tell(part: string, tables: readonly string[], isWhole: boolean): void {
  const text = [`${aboutMachine()}.`, ...tables].join('\n\n');
  say(`\n${text}`);
  if (isWhole && !flags.quick && flags.profile === '') writePart(DOCUMENT, part, text);
}

const measured: Measured[] = [];
for (const part of PARTS.filter((one) => one in PLANS)) measured.push(await measure(PLANS[part] as Plan));
if (measured.length > 0) {
  const isWhole = measured.length === Object.keys(PLANS).length;
  tell('stream', [rateTable(measured), costTable(measured)], isWhole);
}
if (PARTS.includes('memory')) {
  const groups = Math.ceil(MEMORY_TOKENS / LONG.tokens / LONG.sessions);
  tell(
    'stream memory',
    [memoryTable((await stream({ shape: LONG, warm: 1_000, groups }, 'columns')).samples)],
    true,
  );
}
