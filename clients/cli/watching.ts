// Following a task to its end, through restarts of the scheduler.
import { Outcome, type Session, SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { Deadline, sleep } from '../../services/common/clock.ts';
import { asPolarError, PolarError } from '../../services/common/errors.ts';
import { STREAM_PROGRESS_MS } from '../../services/common/limits.ts';
import { rolloutClient } from './mesh-clients.ts';

/** Pause before a broken watch is opened again. */
const REOPEN_MS = 500;
/** Time without the scheduler after which following is given up. */
const UNREACHABLE_MS = 30_000;
/** The same where it was never reached. */
const NEVER_REACHED_MS = 2_000;

/** A watch on which nothing comes for so long is broken, as by a machine that is gone: progress comes all the time. */
const SILENT_MS = 2.5 * STREAM_PROGRESS_MS;

/** What watches on one scheduler know of it together. */
export interface Contact {
  /** It has answered: it comes back. */
  isMade: boolean;
}

/** Several at once. One that cannot be followed ends the others: throws what that one throws. */
export async function followTasks(
  url: string,
  taskIds: readonly string[],
  onChange: (session: Session) => void,
  { signal, contact }: { readonly signal: AbortSignal; readonly contact: Contact },
): Promise<Session[][]> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    const follow = (id: string): Promise<Session[]> => followTask(url, id, onChange, either, { contact });
    return await Promise.all(taskIds.map(follow));
  } finally {
    over.abort();
  }
}

/** Calls `onChange` for each change, and returns the sessions when all have ended or the signal aborts. */
export async function followTask(
  url: string,
  taskId: string,
  onChange: (session: Session) => void,
  signal: AbortSignal,
  { silentMs = SILENT_MS, contact = { isMade: false } }: { silentMs?: number; contact?: Contact } = {},
): Promise<Session[]> {
  const client = rolloutClient(url);
  const sessions = new Map<string, Session>();
  let lastSeen = performance.now();
  let resumeCursor = '';
  while (!signal.aborted) {
    using silence = new Deadline(silentMs, signal);
    try {
      const watch = client.watchTask({ taskId, resumeCursor, summary: true }, { signal: silence.signal });
      for await (const { session, cursor } of watch) {
        silence.renew();
        resumeCursor = cursor;
        lastSeen = performance.now();
        contact.isMade = true;
        if (session === undefined || !isNews(sessions.get(session.sessionId), session)) continue;
        sessions.set(session.sessionId, session);
        onChange(session);
      }
      const all = await allSessions(url, taskId);
      if (all.every(({ state }) => state === SessionState.ENDED)) return all;
      throw new PolarError('NODE_LOST', `the scheduler has ended the watch, and task ${taskId} goes on`);
    } catch (thrown) {
      if (signal.aborted) break;
      const error = silence.isOver ? silent(silentMs) : thrown;
      const { retryable } = asPolarError(error);
      const limitMs = contact.isMade ? UNREACHABLE_MS : NEVER_REACHED_MS;
      if (!retryable || performance.now() - lastSeen > limitMs) throw error;
      await sleep(REOPEN_MS, signal);
    }
  }
  return [...sessions.values()];
}

const silent = (ms: number): PolarError =>
  new PolarError('NODE_LOST', `the scheduler has said nothing for ${ms / 1000} s`);

const isNews = (before: Session | undefined, now: Session): boolean =>
  before === undefined || before.state !== now.state || before.attempt !== now.attempt;

/** All sessions of a task, by sample index. */
export async function allSessions(url: string, taskId: string): Promise<Session[]> {
  const client = rolloutClient(url);
  const sessions: Session[] = [];
  let pageToken = '';
  do {
    const page = await client.listSessions({ taskId, pageSize: 1000, pageToken });
    sessions.push(...page.sessions);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return sessions;
}

const WITHOUT_TRAJECTORY = [Outcome.UNSPECIFIED, Outcome.INFRASTRUCTURE_ERROR, Outcome.CANCELLED];

/** Whether a session ended with a trajectory that counts. */
export const hasTrajectory = ({ outcome, stats }: Session): boolean =>
  stats !== undefined && !WITHOUT_TRAJECTORY.includes(outcome);

/** Whether all came out as their task asks: with trajectories, but for those that its group did not wait for. */
export const isComplete = (sessions: readonly Session[]): boolean =>
  sessions.length > 0 &&
  sessions.every((session) => hasTrajectory(session) || session.failure?.reason === 'EARLY_STOPPED');
