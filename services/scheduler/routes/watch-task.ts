// WatchTask: the present state of every session, or of those that changed since a cursor, then every change, until all have
// ended. A cursor is the revision of the session that was sent last: sessions are sent in the order of their revisions.
import type { ServiceImpl } from '@connectrpc/connect';
import type {
  RolloutService,
  Task,
  WatchTaskRequest,
} from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PAGE_SIZE_MAX, STREAM_PROGRESS_MS } from '../../common/limits.ts';
import { type Archive, recordOf } from '../archive/archive.ts';
import { archivedTaskOf, archivedView } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { shownTask } from '../domain/lookup.ts';
import { sessionOf } from '../domain/session.ts';
import { allEnded } from '../domain/state.ts';
import { summaryOf, taskView } from '../domain/view.ts';

/** Any cursor may be behind what is archived. */
const MAX_REVISION = 10n ** 18n;

export function watchTask({
  archive,
  board,
  watchers,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'watchTask'> {
  return {
    async *watchTask({ taskId, resumeCursor, summary, changesOnly }, { signal }) {
      const task = shownTask(board.state, taskId);
      if (task === undefined) return yield* ended(archive, { taskId, resumeCursor, summary, changesOnly });
      const view = (): Task => (summary ? summaryOf(taskView(task)) : taskView(task));
      const watcher = watchers.open(taskId);
      try {
        // Taken in one turn, before any change that the watcher gets.
        let cursor = String(board.state.revision);
        const begins = changesOnly && resumeCursor === '';
        const seen = begins ? board.state.revision : seenOf(resumeCursor, board.state.revision);
        const present = task.sessions
          .map((_, i) => board.state.session(task, i))
          .filter(({ revision }) => seen === undefined || revision > seen)
          .sort((a, b) => (a.revision < b.revision ? -1 : a.revision > b.revision ? 1 : 0));
        if (begins) yield { task: view(), cursor };
        for (const record of present) {
          // Sessions that have not changed yet have no revision: a watch that is cut among them begins anew.
          const reached = record.revision === 0n ? '' : String(record.revision);
          yield { session: sessionOf(record), task: view(), cursor: reached };
        }
        while (!signal.aborted) {
          const ended = allEnded(task);
          const changes = await watcher.next(ended ? 0 : STREAM_PROGRESS_MS, signal);
          for (const record of changes) {
            cursor = String(record.revision);
            yield { session: sessionOf(record), task: view(), cursor };
          }
          if (ended && changes.length === 0) return;
          if (changes.length === 0 && !signal.aborted) yield { cursor };
        }
        // A stop is not the end of the task.
        signal.throwIfAborted();
      } finally {
        watchers.close(taskId, watcher);
      }
    },
  };
}

type Asked = 'taskId' | 'resumeCursor' | 'summary' | 'changesOnly';

/** A task that has left memory: its sessions as they ended. */
async function* ended(
  archive: Archive,
  { taskId, resumeCursor, summary, changesOnly }: Pick<WatchTaskRequest, Asked>,
) {
  const archived = await archivedTaskOf(archive, taskId);
  const view = archivedView(archived);
  const task = summary ? summaryOf(view) : view;
  if (changesOnly && resumeCursor === '') {
    yield { task, cursor: '' };
    return;
  }
  const { numSamples } = recordOf(archived);
  const seen = seenOf(resumeCursor, MAX_REVISION) ?? -1n;
  for (let from = 0; from < numSamples; from += PAGE_SIZE_MAX) {
    const records = await archive.sessions(archived, from, from + PAGE_SIZE_MAX);
    for (const record of records) {
      // Not in the order of revisions: a watch that is cut here begins anew.
      if (record.revision > seen) yield { session: sessionOf(record), task, cursor: '' };
    }
  }
}

/** What a watcher has seen; undefined: nothing that this scheduler knows of. */
function seenOf(cursor: string, revision: bigint): bigint | undefined {
  if (!/^\d{1,18}$/.test(cursor)) return undefined;
  const seen = BigInt(cursor);
  return seen > revision ? undefined : seen;
}
