// ListSessions: a page of a task's sessions by sample index. The page token is the next sample index.
import type { ServiceImpl } from '@connectrpc/connect';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { recordOf } from '../archive/archive.ts';
import { archivedTaskOf } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { invalid, pageSizeOf } from '../domain/lookup.ts';
import { sessionOf } from '../domain/session.ts';

export function listSessions(
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'listSessions'> {
  return {
    async listSessions({ taskId, pageSize, pageToken }) {
      const size = pageSizeOf(pageSize);
      if (!/^\d{0,6}$/.test(pageToken)) throw invalid('page_token', 'is not one of this service');
      const from = Number(pageToken);
      const { total, records } = await pageOf(ctx, taskId, from, from + size);
      return {
        sessions: records.map(sessionOf),
        nextPageToken: from + size < total ? String(from + size) : '',
      };
    },
  };
}

async function pageOf(
  { archive, board: { state } }: SchedulerContext,
  taskId: string,
  from: number,
  to: number,
): Promise<{ total: number; records: SessionRecord[] }> {
  const live = state.tasks.get(taskId);
  if (live === undefined) {
    const task = await archivedTaskOf(archive, taskId);
    return { total: recordOf(task).numSamples, records: await archive.sessions(task, from, to) };
  }
  const total = live.record.numSamples;
  const count = Math.max(0, Math.min(to, total) - from);
  return { total, records: Array.from({ length: count }, (_, i) => state.session(live, from + i)) };
}
