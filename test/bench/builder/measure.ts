// What a build takes: from records as they lie in the stream to the bytes of the trajectory.
import process from 'node:process';
import { create } from '@bufbuild/protobuf';
import { TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { build } from '../../../services/reconstructor/domain/build.ts';
import { encodeTrajectory } from '../../../services/reconstructor/domain/encode.ts';
import { expand } from '../../../services/reconstructor/domain/expand.ts';
import { readRecord } from '../../../services/reconstructor/domain/record.ts';
import { seeded } from '../../support/laws.ts';
import { recordsOfSession, TURN_TOKENS } from './sessions.ts';

/** Of each round, in order. */
export interface Built {
  readonly turns: number;
  /** Time of one build. */
  readonly timesMs: readonly number[];
  /** CPU of one build on all threads: the collection of what builds leave behind counts. */
  readonly cpuMs: readonly number[];
}

export interface Rounds {
  readonly rounds: number;
  /** Before them, not counted: the compiler is still at work. */
  readonly warmUp: number;
  /** Turns that are built of each size in a round, so that each size leaves as much garbage behind. */
  readonly turns: number;
}

/**
 * All sizes in each round, in an order of its own: what else the machine does falls on all alike. Each build of a round has
 * a session of its own, as in the reconstructor: one that was built just before lies in the processor's cache if it is small.
 */
export function measure(sizes: readonly number[], { rounds, warmUp, turns: each }: Rounds): Built[] {
  const sessions = sizes.map((turns) => ({
    turns,
    stored: Array.from({ length: Math.round(each / turns) }, () => recordsOfSession(turns)),
    timesMs: [] as number[],
    cpuMs: [] as number[],
  }));
  const random = seeded(1);
  for (let round = -warmUp; round < rounds; round++) {
    for (const session of sessions.toSorted(() => random() - 0.5)) {
      const { timeMs, cpuMs } = take(session);
      if (round < 0) continue;
      session.timesMs.push(timeMs);
      session.cpuMs.push(cpuMs);
    }
  }
  return sessions;
}

/** A first build in this process. */
export function firstMs(turns: number): number {
  const stored = recordsOfSession(turns);
  const startedAt = performance.now();
  buildOnce(stored, turns);
  return performance.now() - startedAt;
}

function take({ turns, stored }: { turns: number; stored: readonly Uint8Array[][] }): {
  timeMs: number;
  cpuMs: number;
} {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  for (const records of stored) buildOnce(records, turns);
  const { user, system } = process.cpuUsage(before);
  const each = (sum: number): number => sum / stored.length;
  return { timeMs: each(performance.now() - startedAt), cpuMs: each((user + system) / 1000) };
}

function buildOnce(stored: readonly Uint8Array[], turns: number): void {
  const built = build('prefix_merging', expand(stored.map(readRecord)));
  const bytes = encodeTrajectory(create(TrajectorySchema, { builder: 'prefix_merging', ...built }));
  const trained = Number(built.stats.trainedTokens);
  if (trained !== (turns * TURN_TOKENS) / 2 || bytes.length < trained)
    throw new Error('it built something else');
}
