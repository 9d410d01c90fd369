// npm run test:chaos: the full form of the storm. POLAR_CHAOS_SEED replays the order of its strikes. Writes
// docs/benchmarks.md.
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { writePart } from '../bench/proxy/report.ts';
import { aboutMachine, say } from '../bench/scheduler/machine.ts';
import { PROGRAMS_IMAGE } from '../support/container-engine.ts';
import { dockerIsThere } from '../support/docker.ts';
import { nodeWith, UNDER_LOAD } from '../support/engines.ts';
import { isRight, tableOf } from './account.ts';
import type { ClusterEngine } from './engines.ts';
import { storm } from './storm.ts';

const SAMPLES = 20;

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env['POLAR_CHAOS_SEED'] ?? String(randomInt(1_000_000)) },
    sessions: { type: 'string', default: '1000' },
    slots: { type: 'string', default: '6' },
    every: { type: 'string', default: '3' },
    docker: { type: 'boolean', default: dockerIsThere },
    // Killed in the middle, its service may leave commands of podman that wait for each other for good.
    podman: { type: 'boolean', default: false },
    write: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

const seed = Number(flags.seed);
say(`POLAR_CHAOS_SEED=${seed}`);
const kinds = UNDER_LOAD.filter(({ backend }) => flags[backend]);
await using started = new AsyncDisposableStack();
const engines: ClusterEngine[] = [];
for (const kind of kinds) {
  const engine = started.use(await kind.start());
  engines.push({ ...kind, engine, image: PROGRAMS_IMAGE, node: nodeWith(kind, engine) });
}
const began = performance.now();
const entries = await storm(
  {
    seed,
    tasks: Math.ceil(Number(flags.sessions) / SAMPLES),
    samples: SAMPLES,
    runSlots: Number(flags.slots),
    submitEveryMs: 1_000,
    strikeEveryMs: 1_000 * Number(flags.every),
    strikesMax: Number.POSITIVE_INFINITY,
    endMs: 900_000,
    engines,
  },
  say,
);
const seconds = ((performance.now() - began) / 1000).toFixed(0);
const text = `${aboutMachine()}. Seed ${seed}, ${seconds} s.\n\n\`\`\`\n${tableOf(entries)}\n\`\`\``;
say(text);
if (flags.write) writePart(join(import.meta.dirname, '../../docs/benchmarks.md'), 'chaos', text);
process.exitCode = entries.every(isRight) ? 0 : 1;
