// ListSessions: a page of a task's sessions by sample index. The page token is the next sample index.
import type { ServiceImpl } from '@connectrpc/connect';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { RolloutService, Waiting } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { recordOf } from '../archive/archive.ts';
import { archivedTaskOf } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { invalid, pageSizeOf, shownTask } from '../domain/lookup.ts';
import { sessionOf } from '../domain/session.ts';
import { waitingsOf } from '../domain/waiting.ts';

/** Each that waits is compared with every node. */
const WAITING_PAGE_MAX = 100;

export function listSessions(
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'listSessions'> {
  return {
    async listSessions({ taskId, pageSize, pageToken, waiting }) {
      const size = pageSizeOf(pageSize);
      if (waiting && size > WAITING_PAGE_MAX) {
        throw invalid('page_size', `must be at most ${WAITING_PAGE_MAX} with waiting`);
      }
      if (!/^\d{0,6}$/.test(pageToken)) throw invalid('page_token', 'is not one of this service');
      const from = Number(pageToken);
      const { total, records } = await pageOf(ctx, taskId, from, from + size);
      return {
        sessions: records.map(sessionOf),
        nextPageToken: from + size < total ? String(from + size) : '',
        waiting: waiting ? waitingIn(ctx, taskId, records) : {},
      };
    },
  };
}

/** By session id, of those that wait. */
function waitingIn(
  { board: { state }, surroundings }: SchedulerContext,
  taskId: string,
  records: readonly SessionRecord[],
): Record<string, Waiting> {
  const task = shownTask(state, taskId);
  return task === undefined ? {} : waitingsOf(records, task.spec, surroundings());
}

async function pageOf(
  { archive, board: { state } }: SchedulerContext,
  taskId: string,
  from: number,
  to: number,
): Promise<{ total: number; records: SessionRecord[] }> {
  const live = shownTask(state, taskId);
  if (live === undefined) {
    const task = await archivedTaskOf(archive, taskId);
    return { total: recordOf(task).numSamples, records: await archive.sessions(task, from, to) };
  }
  const total = live.record.numSamples;
  const count = Math.max(0, Math.min(to, total) - from);
  return { total, records: Array.from({ length: count }, (_, i) => state.session(live, from + i)) };
}
