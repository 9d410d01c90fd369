// What a build takes: from records as they lie in the stream to the bytes of the trajectory.
import process from 'node:process';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { build } from '../../../services/reconstructor/domain/build.ts';
import { expand } from '../../../services/reconstructor/domain/expand.ts';
import { recordsOfSession, TURN_TOKENS } from './sessions.ts';

export interface Built {
  readonly turns: number;
  readonly tokens: number;
  /** Of each round, in order; the first is that of a process that has built nothing so large. */
  readonly timesMs: readonly number[];
  /** CPU of a round, mean of those after the warm-up, with the collection of what they leave behind. */
  readonly cpuMs: number;
}

/** The compiler is still at work in the first `warmUp` rounds. */
export function measure(turns: number, rounds: number, warmUp = 0): Built {
  const stored = recordsOfSession(turns);
  const timesMs: number[] = [];
  let before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) {
    if (round === warmUp) before = process.cpuUsage();
    const startedAt = performance.now();
    buildOnce(stored, turns);
    timesMs.push(performance.now() - startedAt);
  }
  const { user, system } = process.cpuUsage(before);
  const cpuMs = (user + system) / 1000 / (rounds - warmUp);
  return { turns, tokens: turns * TURN_TOKENS, timesMs, cpuMs };
}

function buildOnce(stored: readonly Uint8Array[], turns: number): void {
  const records = stored.map((bytes) => fromBinary(CompletionSchema, bytes));
  const built = build('prefix_merging', expand(records));
  const bytes = toBinary(TrajectorySchema, create(TrajectorySchema, { builder: 'prefix_merging', ...built }));
  const trained = Number(built.stats.trainedTokens);
  if (trained !== (turns * TURN_TOKENS) / 2 || bytes.length < trained)
    throw new Error('it built something else');
}
