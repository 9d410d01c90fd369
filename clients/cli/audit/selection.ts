// Which sessions are audited.
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { asPolarError, PolarError } from '../../../services/common/errors.ts';
import { rolloutClient } from '../mesh-clients.ts';
import { allSessions } from '../watching.ts';

const TASKS_PAGE = 1000;

/** The sessions of a task, else the one of that id. */
export async function sessionsOf(url: string, id: string): Promise<Session[]> {
  const notFound = (error: unknown): undefined => {
    if (asPolarError(error).reason !== 'NOT_FOUND') throw error;
  };
  const sessions = await allSessions(url, id).catch(notFound);
  if (sessions !== undefined) return sessions;
  const found = await rolloutClient(url).getSession({ sessionId: id }).catch(notFound);
  if (found?.session === undefined) throw new PolarError('NOT_FOUND', `no task or session ${id}`);
  return [found.session];
}

/** Sessions that ended since then, of all tasks. */
export async function endedSince(url: string, sinceMs: number): Promise<Session[]> {
  const client = rolloutClient(url);
  const found: Session[] = [];
  const sinceTime = timestampFromMs(sinceMs);
  let pageToken = '';
  do {
    const page = await client.listTasks({ pageSize: TASKS_PAGE, pageToken, summary: true, sinceTime });
    for (const { taskId } of page.tasks) found.push(...(await allSessions(url, taskId)));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return found.filter(({ endTime }) => endTime !== undefined && timestampMs(endTime) >= sinceMs);
}
