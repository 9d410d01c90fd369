// A trainer that commits steps as the documentation says, a reconstructor and a NATS server, killed at random while
// groups come.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { eventually } from '../support/eventually.ts';
import { seeded } from '../support/laws.ts';
import { freePort, startNats } from '../support/nats.ts';
import { Mesh } from '../support/reconstructor.ts';
import { type Running, runningOf, startReconstructorProcess } from './reconstructor-process.ts';

const root = join(import.meta.dirname, '../..');
const CONSUMER = 'trainer';
/** Between two strikes. */
const PAUSE_MS = { least: 100, most: 900 };
/** After the last strike everything that is left is trained on. */
const END_MS = 120_000;

export interface StormOptions {
  readonly seed: number;
  /** Even: a step takes two. */
  readonly groups: number;
  readonly strikes: number;
}

export interface Delivery {
  readonly batchId: number;
  readonly deliveryCount: number;
  readonly redelivered: boolean;
}

export interface StormResult {
  /** Ids of all groups that were published, ascending. */
  readonly published: readonly number[];
  /** Batch ids in the trainer's journal, in its order. */
  readonly trained: readonly number[];
  /** What the trainer's processes were given, in order. */
  readonly deliveries: readonly Delivery[];
  readonly killed: Readonly<Record<string, number>>;
  readonly pending: number;
  /** Processes that ended without being killed. */
  readonly fallen: readonly string[];
}

/** Runs until the trainer has a step for every group, and the consumer nothing left. */
export async function storm({ seed, groups, strikes }: StormOptions): Promise<StormResult> {
  const random = seeded(seed);
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-consumers-'));
  const port = await freePort();
  await using nats = await startNats();
  const mesh = await Mesh.open(nats.url);
  const journal = join(folder, 'steps.jsonl');
  const deliveries: Delivery[] = [];
  const fallen: string[] = [];
  await using reconstructor = processOf('reconstructor', fallen, () =>
    startReconstructorProcess(port, nats.url),
  );
  await using trainer = trainerProcess(port, journal, deliveries, fallen);
  const targets = { nats, reconstructor, trainer };
  const killed = { nats: 0, reconstructor: 0, trainer: 0 };
  try {
    await reconstructor.start();
    await trainer.start();
    for (let strike = 0, published = 0; strike < strikes; strike++) {
      const upTo = Math.round(((strike + 1) * groups) / strikes);
      const announcing = announce(mesh, published, upTo);
      published = upTo;
      await sleep(PAUSE_MS.least + random() * (PAUSE_MS.most - PAUSE_MS.least));
      const name = nextTarget(killed, random);
      await targets[name].kill();
      killed[name]++;
      await targets[name].start();
      await announcing;
    }
    const client = createServiceClient(TrajectoryService, `http://127.0.0.1:${port}`);
    let pending = -1;
    const isDone = async (): Promise<boolean> => {
      const { consumers } = await client.listConsumers({});
      pending = Number(consumers[0]?.pending ?? groups);
      return pending === 0 && trainedIn(journal).length >= groups;
    };
    await eventually(() => `${trainedIn(journal).length} of ${groups}, ${pending} pending`, isDone, END_MS);
    const [published, trained] = [await publishedIn(mesh), trainedIn(journal)];
    return { published, trained, deliveries, killed, pending, fallen };
  } finally {
    await mesh.close();
    rmSync(folder, { recursive: true });
  }
}

/** Each as often as the others, in random order. */
function nextTarget<T extends string>(killed: Record<T, number>, random: () => number): T {
  const names = Object.keys(killed) as T[];
  const least = Math.min(...names.map((name) => killed[name]));
  const open = names.filter((name) => killed[name] === least);
  return open[Math.floor(random() * open.length)] as T;
}

async function announce(mesh: Mesh, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await mesh.announceTrace(`t${i}`, 64, 2);
}

async function publishedIn(mesh: Mesh): Promise<number[]> {
  const { state } = await mesh.bus.jsm.streams.info(STREAMS.trajectories.name);
  return Array.from({ length: state.last_seq - state.first_seq + 1 }, (_, i) => state.first_seq + i);
}

function trainedIn(journal: string): number[] {
  const lines = readFileSync(journal, 'utf8').split('\n').slice(0, -1);
  const steps = lines.map((line) => JSON.parse(line) as { batches: [batchId: number, readyMs: number][] });
  return steps.flatMap(({ batches }) => batches.map(([batchId]) => batchId));
}

interface Process extends AsyncDisposable {
  start(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
}

function processOf(name: string, fallen: string[], launch: () => Promise<Running>): Process {
  let running: Running | undefined;
  const kill = async (): Promise<void> => {
    const ended = running?.ended();
    if (ended !== undefined) fallen.push(`${name}: ${ended}`);
    await running?.[Symbol.asyncDispose]();
    running = undefined;
  };
  return {
    async start() {
      running = await launch();
    },
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

/** Not waited for: what it does at its start may be cut, too. */
function trainerProcess(port: number, journal: string, deliveries: Delivery[], fallen: string[]): Process {
  const script = join(root, 'examples/trainer/exactly_once.py');
  const url = `http://127.0.0.1:${port}`;
  const options = ['--journal', journal, '--batches-a-step', '2', '--step-s', '0.03'];
  const command = [join(root, '.venv/bin/python'), script, '--trajectory-url', url, '--consumer', CONSUMER];
  const env = { ...process.env, PYTHONPATH: join(root, 'clients/python/src') };
  writeFileSync(journal, '');
  let starts = 0;
  return processOf('trainer', fallen, async () => {
    // Its cursor does not care in which layout batches came before; small groups are packed meanwhile.
    const layout = starts++ % 2 === 0 ? 'columns' : 'traces';
    // It ends with this process, even where that is killed.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...command, ...options, '--layout', layout], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface({ input: child.stdout }).on('line', (line) => deliveries.push(deliveryOf(line)));
    return runningOf(child);
  });
}

function deliveryOf(line: string): Delivery {
  const [, batchId, deliveryCount, redelivered] = /^batch (\d+) (\d+) (True|False)$/.exec(line) ?? [];
  if (redelivered === undefined) throw new Error(`the trainer said: ${line}`);
  const marked = redelivered === 'True';
  return { batchId: Number(batchId), deliveryCount: Number(deliveryCount), redelivered: marked };
}
