// ListTasks: a page of tasks, newest first; behind those in memory the archived ones, the one that was archived last first.
// The page token is the order of the last task in memory, or the place of the next one in the archive: both outlive a take-over.
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { recordOf } from '../archive/archive.ts';
import { archivedView } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { invalid, pageSizeOf } from '../domain/lookup.ts';
import { allEnded, type TaskState } from '../domain/state.ts';
import { firstOf, liveFiltered, shownFiltered, wantedBy } from '../domain/task-filter.ts';
import { summaryOf, taskView } from '../domain/view.ts';

const PAGE_TOKEN = /^(?:(order|archive)-(\d{1,15}))?$/;

export function listTasks({
  archive,
  board: { state },
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'listTasks'> {
  return {
    async listTasks({ pageSize, pageToken, summary, sinceTime, filter }) {
      const wanted = wantedBy(filter);
      const size = pageSizeOf(pageSize);
      const sinceMs = sinceTime === undefined ? 0 : timestampMs(sinceTime);
      const token = PAGE_TOKEN.exec(pageToken);
      if (token === null) throw invalid('page_token', 'is not one of this version: begin anew');
      const [, kind = 'first', at] = token;
      // One more than is shown: it tells that there are more.
      const live = firstOf(
        kind === 'archive' ? [] : newestFirst(state.tasks.values(), at),
        (task) => (!allEnded(task) || task.endMs >= sinceMs) && wanted(liveFiltered(task)),
        size + 1,
      );
      const page = live.slice(0, size);
      const shown = page.map(taskView);
      let nextPageToken = '';
      if (live.length > size) {
        nextPageToken = `order-${page.at(-1)?.order}`;
      } else {
        const { tasks, next } = await archive.list(
          size - page.length,
          (task) => wanted(shownFiltered(archivedView(task))),
          kind === 'archive' ? Number(at) : undefined,
          sinceMs,
        );
        // One whose sessions go again is in both, and one that went to the archive meanwhile is shown already.
        const isNew = (taskId: string): boolean =>
          !state.tasks.has(taskId) && !page.some(({ record }) => record.taskId === taskId);
        shown.push(...tasks.filter((task) => isNew(recordOf(task).taskId)).map(archivedView));
        if (next !== undefined) nextPageToken = `archive-${next}`;
      }
      return { tasks: summary ? shown.map(summaryOf) : shown, nextPageToken };
    },
  };
}

/** Behind the one whose order is `last`. */
function newestFirst(tasks: Iterable<TaskState>, last: string | undefined): TaskState[] {
  const all = [...tasks].reverse();
  return last === undefined ? all : all.filter(({ order }) => order < Number(last));
}
