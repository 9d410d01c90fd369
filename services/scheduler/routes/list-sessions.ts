// ListSessions: a page of a task's sessions by sample index. The page token is the next sample index.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { invalid, pageSizeOf, taskOf } from '../domain/lookup.ts';
import { sessionOf } from '../domain/session.ts';

export function listSessions({
  board,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'listSessions'> {
  return {
    listSessions({ taskId, pageSize, pageToken }) {
      const task = taskOf(board.state, taskId);
      const size = pageSizeOf(pageSize);
      if (!/^\d{0,6}$/.test(pageToken)) throw invalid('page_token', 'is not one of this service');
      const from = Number(pageToken);
      const to = Math.min(from + size, task.record.numSamples);
      const indexes = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
      return {
        sessions: indexes.map((i) => sessionOf(board.state.session(task, i))),
        nextPageToken: to < task.record.numSamples ? String(to) : '',
      };
    },
  };
}
