// ListTasks: a page of tasks, newest first. The page token is the last task of the page before.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { invalid, pageSizeOf } from '../domain/lookup.ts';
import { taskView } from '../domain/view.ts';

export function listTasks({
  board,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'listTasks'> {
  return {
    listTasks({ pageSize, pageToken }) {
      const { tasks } = board.state;
      const size = pageSizeOf(pageSize);
      const last = tasks.get(pageToken);
      if (pageToken !== '' && last === undefined) {
        throw invalid('page_token', 'names a task that is not there any more: begin again');
      }
      const newestFirst = [...tasks.values()].reverse();
      const rest = last === undefined ? newestFirst : newestFirst.filter(({ order }) => order < last.order);
      const page = rest.slice(0, size);
      return {
        tasks: page.map(taskView),
        nextPageToken: rest.length > size ? (page.at(-1)?.record.taskId ?? '') : '',
      };
    },
  };
}
