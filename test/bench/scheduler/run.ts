// npm run bench:scheduler: what the scheduler holds and how soon it acts, with many sessions. Writes docs/benchmarks.md.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { nodeFlagsOf } from '../../../clients/cli/services.ts';
import { openBus } from '../../../services/common/nats/bus.ts';
import { STREAMS } from '../../../services/common/nats/streams.ts';
import { freePort, startNats } from '../../support/nats.ts';
import {
  type RolloutClient,
  type SchedulerProcess,
  spawnScheduler,
  taskSpec,
  until,
} from '../../support/scheduler.ts';
import { Inspector } from '../proxy/inspector.ts';
import { writePart } from '../proxy/report.ts';
import { distributionOf } from '../proxy/statistics.ts';
import { latencies } from './latencies.ts';
import { aboutMachine, say } from './machine.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    write: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

const QUEUED = 10_000;
const FINISHED = 100_000;
/** A task that waits: no node of the bench has its image. */
const WAITS = { runtime: { backend: 'bubblewrap', image: 'none' } };
const STATUS_CALLS = 200;
const SMALL_TASK = 8;
const SUBMITS_AT_ONCE = 32;

const rows: string[] = [];

function row(what: string, goal: number, unit: string, measured: number): void {
  const digits = measured < 10 ? 2 : 0;
  rows.push(
    `| ${what} | ≤ ${goal.toLocaleString('en')} ${unit} | ${measured.toFixed(digits)} ${unit} | ${measured <= goal ? 'yes' : '**no**'} |`,
  );
  say(rows.at(-1) ?? '');
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const begunMs = performance.now();
  await run();
  return performance.now() - begunMs;
}

async function usedBytes(port: number): Promise<number> {
  using inspector = await Inspector.open(port);
  return await inspector.usedBytes();
}

/** As 10,000 sessions of one task, and as tasks of eight. */
async function submits(client: RolloutClient): Promise<void> {
  const spec = taskSpec('waiting', { numSamples: QUEUED, ...WAITS });
  const oneMs = await timed(() => client.submitTask({ spec }));
  row('submit of 10,000 sessions as one task, acknowledged', 5_000, 'ms', oneMs);
  const tasks = Array.from({ length: QUEUED / SMALL_TASK }, (_, i) => `small-${i}`);
  const submitSome = async (): Promise<void> => {
    for (let id = tasks.pop(); id !== undefined; id = tasks.pop()) {
      await client.submitTask({ spec: taskSpec(id, { numSamples: SMALL_TASK, ...WAITS }) });
    }
  };
  const manyMs = await timed(() => Promise.all(Array.from({ length: SUBMITS_AT_ONCE }, submitSome)));
  row('the same as 1,250 tasks of 8, 32 at once', 5_000, 'ms', manyMs);
  for (let i = 0; i < QUEUED / SMALL_TASK; i++) await client.cancelTask({ taskId: `small-${i}` });
}

async function statuses(client: RolloutClient): Promise<void> {
  const samples: number[] = [];
  for (let i = 0; i < STATUS_CALLS; i++)
    samples.push(await timed(() => client.getTask({ taskId: 'waiting' })));
  row('GetTask of a task of 10,000 sessions, p99', 100, 'ms', distributionOf(samples).p99);
}

/** Tasks that are submitted and cancelled, until all of them are in the archive. */
async function finish(client: RolloutClient, natsUrl: string): Promise<void> {
  const bus = await openBus({ url: natsUrl, name: 'bench' });
  const archived = async (): Promise<number> =>
    (await bus.jsm.streams.info(STREAMS.archivedTasks.name)).state.messages;
  const before = await archived();
  const tasks = FINISHED / QUEUED;
  for (let i = 0; i < tasks; i++) {
    await client.submitTask({ spec: taskSpec(`finished-${i}`, { numSamples: QUEUED, ...WAITS }) });
    await client.cancelTask({ taskId: `finished-${i}` });
  }
  await until('all are archived', async () => (await archived()) === before + tasks, 60_000);
  await bus.close();
}

async function restarts(scheduler: SchedulerProcess): Promise<void> {
  await scheduler.kill();
  const ms = await timed(async () => {
    await scheduler.start();
    await scheduler.client.getTask({ taskId: 'waiting' });
  });
  row(
    'restart after SIGKILL with 10,000 live and 120,000 ended sessions, to the first answer',
    10_000,
    'ms',
    ms,
  );
}

await using nats = await startNats();
const inspect = await freePort();
await using scheduler = await spawnScheduler(nats.url, {}, [
  ...nodeFlagsOf('scheduler'),
  `--inspect=127.0.0.1:${inspect}`,
]);
const { client } = scheduler;
await client.submitTask({ spec: taskSpec('warm', WAITS) });
await submits(client);
const beforeBytes = await usedBytes(inspect);
await client.submitTask({ spec: taskSpec('more', { numSamples: QUEUED, ...WAITS }) });
const queuedBytes = await usedBytes(inspect);
row('memory of a session that waits', 2_048, 'bytes', (queuedBytes - beforeBytes) / QUEUED);
await client.cancelTask({ taskId: 'more' });
await statuses(client);
const { samples, perSecond } = await latencies(nats.url, client, Number(flags.seconds) * 1000);
const { p50, p99 } = distributionOf(samples);
row(`fact in → work out at ${perSecond.toFixed(0)} sessions a second, 10,000 waiting, p50`, 20, 'ms', p50);
row('the same, p99', 20, 'ms', p99);
const restBytes = await usedBytes(inspect);
await finish(client, nats.url);
const finishedBytes = await usedBytes(inspect);
row('memory of a session that has ended', 10, 'bytes', (finishedBytes - restBytes) / FINISHED);
await restarts(scheduler);

const text = `${aboutMachine()}.\n\n| what | goal | measured | met |\n|---|--:|--:|---|\n${rows.join('\n')}`;
if (flags.write) writePart(join(import.meta.dirname, '../../../docs/benchmarks.md'), 'scheduler', text);
