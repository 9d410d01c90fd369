// npm run test:consumers: 500 groups through a trainer, a reconstructor and a NATS server that are killed at random;
// then a shared consumer whose processes stop and die. POLAR_CHAOS_SEED replays the order of the strikes. Writes
// docs/benchmarks.md.
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import process from 'node:process';
import { writePart } from '../bench/proxy/report.ts';
import { aboutMachine, say } from '../bench/scheduler/machine.ts';
import { checkAccount } from './account.ts';
import { checkShared } from './shared.ts';
import { storm } from './storm.ts';

const seed = Number(process.env['POLAR_CHAOS_SEED'] ?? randomInt(1_000_000));
say(`POLAR_CHAOS_SEED=${seed}`);
const began = performance.now();
const result = await storm({ seed, groups: 500, strikes: 60 });
checkAccount(result);
const { published, deliveries, killed } = result;
const seconds = ((performance.now() - began) / 1000).toFixed(0);
const again = deliveries.filter(({ redelivered }) => redelivered).length;
// Of so many strikes some hit a trainer that holds something.
if (again === 0) throw new Error('no batch came again: the storm shows nothing');
const text = `${aboutMachine()}. Seed ${seed}, ${seconds} s.

| | |
|---|---|
| groups published | ${published.length} |
| groups in the trainer's journal | ${result.trained.length}, each once |
| batches given to the trainer's processes | ${deliveries.length} |
| of them marked as sent before | ${again}, all that were |
| killed: trainer, reconstructor, nats-server | ${killed['trainer']}, ${killed['reconstructor']}, ${killed['nats']} times |
| left without acknowledgement | ${result.pending} |`;
say(text);
writePart(join(import.meta.dirname, '../../docs/benchmarks.md'), 'consumers', text);
await checkShared();
say('a shared consumer: what a stopped and a killed process held went to the other, marked');
