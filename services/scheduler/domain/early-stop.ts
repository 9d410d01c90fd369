// When a group does not wait for the rest of its sessions any more.
import { durationMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { Outcome, SessionState, sessionOf } from './session.ts';
import type { TaskState } from './state.ts';

/** A trainer can learn from it. */
function isUsable(record: SessionRecord): boolean {
  const { state, outcome, stats } = sessionOf(record);
  return state === SessionState.ENDED && outcome === Outcome.COMPLETED && (stats?.trainedTokens ?? 0n) > 0n;
}

export const usableOf = ({ sessions }: TaskState): number =>
  sessions.filter((record) => record !== undefined && isUsable(record)).length;

/**
 * Unix time in milliseconds from which on the first group of a task does not wait for what is left of it; undefined while
 * there are too few usable sessions. It follows from committed state alone. Sessions of later groups are not stopped: they
 * go again on request, or were carried over.
 */
export function stopAtMs({ spec, sessions, announcedRounds, byOutcome }: TaskState): number | undefined {
  const { earlyStop } = spec;
  if (earlyStop === undefined || announcedRounds > 0) return undefined;
  if ((byOutcome.get(Outcome.COMPLETED) ?? 0) < earlyStop.minUsableSessions) return undefined;
  const ends = sessions
    .filter((record) => record !== undefined)
    .filter(isUsable)
    .map((record) => endMs(record))
    .sort((a, b) => a - b);
  const reached = ends[earlyStop.minUsableSessions - 1];
  return reached === undefined ? undefined : reached + graceMs(earlyStop.grace);
}

function endMs(record: SessionRecord): number {
  const { endTime } = sessionOf(record);
  return endTime === undefined ? 0 : timestampMs(endTime);
}

const graceMs = (grace: Parameters<typeof durationMs>[0] | undefined): number =>
  grace === undefined ? 0 : Math.ceil(durationMs(grace));
