// npm run bench:take-over: how long nobody leads when the scheduler that leads is killed, stands still or is stopped.
// Writes docs/benchmarks.md.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sleep } from '../../../services/common/clock.ts';
import { startNats } from '../../support/nats.ts';
import { type SchedulerProcess, spawnScheduler, taskSpec, until } from '../../support/scheduler.ts';
import { writePart } from '../proxy/report.ts';
import { distributionOf } from '../proxy/statistics.ts';
import { aboutMachine, say } from './machine.ts';

const { values: flags } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, write: { type: 'boolean', default: true } },
  allowNegative: true,
});

const WAYS = {
  killed: 'SIGKILL',
  'stands still': 'SIGSTOP',
  'stopped, gives its lease back': 'SIGTERM',
} as const;
type Way = keyof typeof WAYS;

const LIMIT_MS = 5_000;
/** Between two tries of a submit at the one that follows. */
const TRY_MS = 10;
/** So long after a take-over at most the next one begins: at any moment between two renewals. */
const APART_MS = 1_500;

async function takeOvers(way: Way, rounds: number): Promise<number[]> {
  await using nats = await startNats();
  await using one = await spawnScheduler(nats.url);
  await using two = await spawnScheduler(nats.url);
  const samples: number[] = [];
  for (let leader = one, other = two; samples.length < rounds; [leader, other] = [other, leader]) {
    await sleep(Math.random() * APART_MS);
    samples.push(await takeOver(way, leader, other, samples.length));
    if (way === 'stands still') leader.signal('SIGCONT');
    await leader.ended();
    await leader.start();
    await until('it follows', async () => (await leader.state()) === 'following');
  }
  return samples;
}

/** Milliseconds from the signal to a task that the other one has committed. */
async function takeOver(
  way: Way,
  leader: SchedulerProcess,
  other: SchedulerProcess,
  round: number,
): Promise<number> {
  const begunMs = performance.now();
  leader.signal(WAYS[way]);
  for (;;) {
    const taken = await other.client.submitTask({ spec: taskSpec(`round-${round}`) }).then(
      () => true,
      () => false,
    );
    if (taken) return performance.now() - begunMs;
    await sleep(TRY_MS);
  }
}

const rounds = Number(flags.rounds);
const ways = Object.keys(WAYS) as Way[];
const samples = await Promise.all(ways.map((way) => takeOvers(way, rounds)));
const rows = ways.map((way, i) => {
  const { p50, max } = distributionOf(samples[i] ?? []);
  return `| ${way} | ${(p50 / 1000).toFixed(2)} | ${(max / 1000).toFixed(2)} | ${max <= LIMIT_MS ? 'yes' : '**no**'} |`;
});
const text = [
  `${aboutMachine()}. ${rounds} take-overs each.`,
  ['| the leader is | p50 s | max s | within 5 s |', '|---|--:|--:|---|', ...rows].join('\n'),
].join('\n\n');
say(text);
if (flags.write) writePart(join(import.meta.dirname, '../../../docs/benchmarks.md'), 'take-over', text);
