// npm run test:chaos: the full form of the storm. POLAR_CHAOS_SEED replays the order of its strikes. Writes
// docs/benchmarks.md.
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { writePart } from '../bench/proxy/report.ts';
import { aboutMachine, say } from '../bench/scheduler/machine.ts';
import { dockerIsThere, PROGRAMS_IMAGE, startDockerWithPrograms } from '../support/docker.ts';
import { isRight, tableOf } from './account.ts';
import { storm } from './storm.ts';

const SAMPLES = 20;

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env['POLAR_CHAOS_SEED'] ?? String(randomInt(1_000_000)) },
    sessions: { type: 'string', default: '1000' },
    slots: { type: 'string', default: '6' },
    every: { type: 'string', default: '3' },
    docker: { type: 'boolean', default: dockerIsThere },
    write: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

const seed = Number(flags.seed);
say(`POLAR_CHAOS_SEED=${seed}`);
await using engine = flags.docker ? await startDockerWithPrograms({ remapped: true }) : undefined;
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
    ...(engine && { docker: { engine, image: PROGRAMS_IMAGE } }),
  },
  say,
);
const seconds = ((performance.now() - began) / 1000).toFixed(0);
const text = `${aboutMachine()}. Seed ${seed}, ${seconds} s.\n\n\`\`\`\n${tableOf(entries)}\n\`\`\``;
say(text);
if (flags.write) writePart(join(import.meta.dirname, '../../docs/benchmarks.md'), 'chaos', text);
process.exitCode = entries.every(isRight) ? 0 : 1;
