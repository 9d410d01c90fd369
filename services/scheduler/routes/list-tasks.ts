// ListTasks: a page of tasks, newest first; behind those in memory the archived ones, the one that was archived last first.
// The page token is the order of the last task in memory, or the place of the next one in the archive, and the order that a
// task has which came into memory after the first page: all of them outlive a take-over.
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ArchivedTask } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { RolloutService, Task } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { type Archive, recordOf } from '../archive/archive.ts';
import { archivedView } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { invalid, pageSizeOf, shownTask } from '../domain/lookup.ts';
import { allEnded, isTorn, type State, type TaskState } from '../domain/state.ts';
import { firstOf, liveFiltered, shownFiltered, wantedBy } from '../domain/task-filter.ts';
import { summaryOf, taskView } from '../domain/view.ts';

const PAGE_TOKEN = /^(?:(order|archive)-(\d{1,15})-(\d{1,15}))?$/;

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
      const [, kind = 'first', at, begun = String(state.order)] = token;
      // One more than is shown: it tells that there are more.
      const live = firstOf(
        kind === 'archive' ? [] : newestFirst(state.tasks.values(), at),
        (task) => (!allEnded(task) || task.endMs >= sinceMs) && wanted(liveFiltered(task)),
        size + 1,
      );
      const page = live.slice(0, size);
      const shown = await Promise.all(page.map((task) => wholeView(archive, task)));
      let nextPageToken = '';
      if (live.length > size) {
        nextPageToken = `order-${page.at(-1)?.order}-${begun}`;
      } else {
        // One that was in memory at the first page is shown already, be it in the archive by now.
        const isNew = (taskId: string): boolean =>
          (state.tasks.get(taskId)?.order ?? Number.POSITIVE_INFINITY) >= Number(begun) &&
          !page.some(({ record }) => record.taskId === taskId);
        const { tasks, next } = await archive.list(
          size - page.length,
          (task) => isNew(recordOf(task).taskId) && wanted(shownFiltered(presentView(state, task))),
          kind === 'archive' ? Number(at) : undefined,
          sinceMs,
        );
        shown.push(...tasks.map((task) => presentView(state, task)));
        if (next !== undefined) nextPageToken = `archive-${next}-${begun}`;
      }
      return { tasks: summary ? shown.map(summaryOf) : shown, nextPageToken };
    },
  };
}

/** As it is in memory, where it came back from the archive whole. */
function presentView(state: State, archived: ArchivedTask): Task {
  const task = shownTask(state, recordOf(archived).taskId);
  return task === undefined ? archivedView(archived) : taskView(task);
}

/** As it is in the archive, while it is coming back from there. */
async function wholeView(archive: Archive, task: TaskState): Promise<Task> {
  const archived = isTorn(task) ? await archive.task(task.record.taskId) : undefined;
  return archived === undefined ? taskView(task) : archivedView(archived);
}

/** Behind the one whose order is `last`. */
function newestFirst(tasks: Iterable<TaskState>, last: string | undefined): TaskState[] {
  const all = [...tasks].reverse();
  return last === undefined ? all : all.filter(({ order }) => order < Number(last));
}
