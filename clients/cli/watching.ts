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

/** Calls `onChange` for each change, and returns the sessions when all have ended or the signal aborts. */
export async function followTask(
  url: string,
  taskId: string,
  onChange: (session: Session) => void,
  signal: AbortSignal,
  silentMs = SILENT_MS,
): Promise<Session[]> {
  const client = rolloutClient(url);
  const sessions = new Map<string, Session>();
  let lastSeen = performance.now();
  let limitMs = NEVER_REACHED_MS;
  let resumeCursor = '';
  while (!signal.aborted) {
    using silence = new Deadline(silentMs, signal);
    try {
      const watch = client.watchTask({ taskId, resumeCursor, summary: true }, { signal: silence.signal });
      for await (const { session, cursor } of watch) {
        silence.renew();
        resumeCursor = cursor;
        lastSeen = performance.now();
        limitMs = UNREACHABLE_MS;
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
