// How long a node has lately taken to prepare a sandbox and to run in one: so many runs end while one more is prepared.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { SessionState, sessionOf } from './session.ts';

/** Milliseconds, undefined until there was one. */
export interface Pace {
  readonly prepareMs?: number;
  readonly runMs?: number;
}

/** Weight of the newest: what is cloned from now on counts soon, and one slow preparation does not count for long. */
const NEWEST = 1 / 4;

/** The pace after a session went from one state to another there. */
export function paceAfter(pace: Pace, before: SessionRecord, after: SessionRecord): Pace {
  const [from, to] = [sessionOf(before).state, sessionOf(after).state];
  const ms = Number(after.stateMs - before.stateMs);
  if (from === SessionState.PREPARING && to === SessionState.READY) {
    return { ...pace, prepareMs: blend(pace.prepareMs, ms) };
  }
  if (from === SessionState.RUNNING && to === SessionState.FINISHING) {
    return { ...pace, runMs: blend(pace.runMs, ms) };
  }
  return pace;
}

/** How many runs are expected to end, with all run slots busy, while a sandbox is prepared. */
export const endingWithin = ({ prepareMs, runMs }: Pace, runSlots: number): number =>
  prepareMs === undefined || runMs === undefined
    ? 0
    : Math.floor((runSlots * prepareMs) / Math.max(1, runMs));

const blend = (known: number | undefined, newest: number): number =>
  known === undefined ? newest : known + (newest - known) * NEWEST;
