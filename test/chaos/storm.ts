// One storm over a cluster: tasks are submitted and read while everything is struck; then all is counted.
import { join } from 'node:path';
import { leaderClient } from '../../clients/cli/leader-client.ts';
import { type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  ExportKind,
  TrajectoryService,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { Semaphore, sleep } from '../../services/common/clock.ts';
import { eventually } from '../support/eventually.ts';
import { breaches, type ExportedSession, seeded } from '../support/laws.ts';
import { accountOf, type Entry, groupsOf, none } from './account.ts';
import { type Cluster, startCluster } from './cluster.ts';
import type { ClusterEngine } from './engines.ts';
import { isNothing, type Leftovers, ofIdle, ofStopped } from './leftovers.ts';
import { Strikes } from './strikes.ts';
import { type Submitted, submitAll } from './submits.ts';
import { Trainer } from './trainer.ts';
import { Witness } from './witness.ts';

export interface StormOptions {
  readonly seed: number;
  readonly tasks: number;
  readonly samples: number;
  /** Of each of the three nodes. */
  readonly runSlots: number;
  /** Between two submits. */
  readonly submitEveryMs: number;
  /** Between two strikes, on average. */
  readonly strikeEveryMs: number;
  readonly strikesMax: number;
  /** For all sessions to end. */
  readonly endMs: number;
  /** Where some tasks run. */
  readonly engines?: readonly ClusterEngine[];
}

/** What is left goes away within this. */
const IDLE_MS = 30_000;
const LOOK_MS = 500;
const EXPORTS_AT_ONCE = 4;
const TOKEN_MS = 30;

export async function storm(options: StormOptions, say: (text: string) => void): Promise<Entry[]> {
  const random = (part: number): (() => number) => seeded(options.seed * 3 + part);
  const { engines = [], runSlots } = options;
  const engineFlags = ['--token-ms', String(TOKEN_MS)];
  await using cluster = await startCluster({ runSlots, engineFlags, engines });
  await using witness = await Witness.open(cluster.nats.url);
  const trainer = new Trainer(cluster.reconstructorUrl, join(cluster.folder, 'trainer.jsonl'), random(0));
  const strikes = new Strikes(cluster, random(1), say);
  const [calm, over] = [new AbortController(), new AbortController()];
  const reading = Promise.all([trainer.run(over.signal), witness.run(over.signal)]);
  const striking = strikes.run(options.strikeEveryMs, options.strikesMax, calm.signal);
  striking.catch(() => calm.abort());
  try {
    const submitted = await submitAll({
      ...{ urls: cluster.schedulerUrls, tasks: options.tasks, samples: options.samples, random: random(2) },
      ...{ everyMs: options.submitEveryMs, engines },
    });
    say(`all ${options.tasks} tasks are submitted`);
    const sessions = await endedSessions(cluster, submitted, options.endMs);
    calm.abort();
    await striking;
    const allRead = (): boolean => trainer.log().length >= groupsOf(sessions).size;
    await eventually('all groups are read', allRead).catch(() => {});
    const broken = await brokenLaws(cluster, sessions);
    const idle = await whenIdle(cluster);
    over.abort();
    await reading;
    await cluster.stop();
    const stopped = await ofStopped(cluster);
    return entriesOf({ strikes, witness, trainer, submitted, sessions, broken, idle, stopped });
  } finally {
    calm.abort();
    over.abort();
    await Promise.allSettled([striking, reading]);
  }
}

interface Seen {
  readonly strikes: Strikes;
  readonly witness: Witness;
  readonly trainer: Trainer;
  readonly submitted: Submitted;
  readonly sessions: readonly Session[];
  readonly broken: readonly string[];
  readonly idle: Leftovers;
  readonly stopped: Leftovers;
}

function entriesOf({ strikes, witness, trainer, submitted, sessions, broken, idle, stopped }: Seen): Entry[] {
  const { hits, returned, fenced } = strikes;
  const account = accountOf({
    ...{ submitted: submitted.acknowledged, sessions, ends: witness.ends, batches: trainer.log() },
    harnessKills: hits.get('harness') ?? 0,
  });
  return [
    ...[...hits].map(([kind, count]) => ({ what: `strikes at ${kind}`, count })),
    { what: 'lost nodes that returned and were fenced', count: fenced, expected: returned },
    ...[...submitted.repeats].map(([reason, count]) => ({ what: `submits repeated for ${reason}`, count })),
    none('tasks that a repeated submit gave other sessions', submitted.changed),
    { what: 'commits of the state log', count: witness.commits },
    { what: 'take-overs among the schedulers', count: witness.leaders - 1 },
    { what: 'commits of a scheduler that led no more', count: witness.late, expected: 0 },
    ...account,
    { what: 'batches that came again', count: trainer.redelivered },
    { what: 'of them not marked so', count: trainer.unmarked, expected: 0 },
    none('breaches of the laws of conservation', broken),
    ...leftEntries('left in the idle cluster: ', idle),
    ...leftEntries('left when it has ended: ', stopped),
  ];
}

const leftEntries = (where: string, left: Leftovers): Entry[] =>
  Object.entries(left).map(([kind, some]) => none(`${where}${kind}`, some));

/** All sessions of the cluster when they have ended, or when the time is over. */
async function endedSessions(cluster: Cluster, { acknowledged }: Submitted, ms: number): Promise<Session[]> {
  const client = leaderClient(cluster.schedulerUrls);
  const ended = new Map<string, readonly Session[]>();
  const until = performance.now() + ms;
  for (;;) {
    for (const taskId of acknowledged.keys()) {
      if (ended.get(taskId)?.every(hasEnded)) continue;
      const page = await client.listSessions({ taskId, pageSize: 1_000 }).catch(() => undefined);
      if (page !== undefined) ended.set(taskId, page.sessions);
    }
    const all = [...ended.values()].flat();
    if (ended.size === acknowledged.size && all.every(hasEnded)) return all;
    if (performance.now() > until) return all;
    await sleep(LOOK_MS);
  }
}

const hasEnded = ({ state }: Session): boolean => state === SessionState.ENDED;

/** What a checker that shares no code with the mesh finds in the export of every session. */
async function brokenLaws(cluster: Cluster, sessions: readonly Session[]): Promise<string[]> {
  const client = createServiceClient(TrajectoryService, cluster.reconstructorUrl);
  const slots = new Semaphore(EXPORTS_AT_ONCE);
  const failed: string[] = [];
  const lines = async (sessionId: string, kind: ExportKind): Promise<string[]> =>
    (await Array.fromAsync(client.exportSession({ sessionId, kind }))).map(({ line }) => line);
  const exported = async ({ sessionId }: Session): Promise<ExportedSession> => {
    try {
      return {
        calls: await lines(sessionId, ExportKind.CALLS),
        traces: await lines(sessionId, ExportKind.TRACES),
      };
    } catch (error) {
      failed.push(`${sessionId} cannot be exported: ${error}`);
      return { calls: [], traces: [] };
    }
  };
  const all = await Promise.all(sessions.map((session) => slots.run(() => exported(session))));
  const broken = breaches(all).flatMap((found, i) => found.map((one) => `${sessions[i]?.sessionId}: ${one}`));
  return [...failed, ...broken];
}

/** What is left when nothing goes away any more, or nothing. */
async function whenIdle(cluster: Cluster): Promise<Leftovers> {
  let left: Leftovers = { 'an answer': ['none'] };
  const look = async (): Promise<boolean> => {
    left = await ofIdle(cluster).catch((error) => ({ 'an answer': [String(error)] }));
    return isNothing(left);
  };
  await eventually('nothing is left', look, IDLE_MS).catch(() => {});
  return left;
}
