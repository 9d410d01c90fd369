// Takes settled tasks out of memory: written to the archive, committed as archived, dropped.
import { create } from '@bufbuild/protobuf';
import { type ArchivedTask, ArchivedTaskSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { Effects } from '../dispatch/effects.ts';
import { isEnded } from '../domain/session.ts';
import { archivedChange, isSettled, type State, type TaskState } from '../domain/state.ts';
import { taskView } from '../domain/view.ts';
import type { Journal } from '../journal/journal.ts';
import type { Archive } from './archive.ts';

export interface ArchiverOptions {
  readonly archive: Archive;
  readonly state: State;
  readonly journal: Journal;
  readonly effects: Effects;
}

export class Archiver {
  readonly #options: ArchiverOptions;

  constructor(options: ArchiverOptions) {
    this.#options = options;
  }

  /** To be called when something that a task waited for is done, durably, and at a take-over. */
  check(task: TaskState): void {
    const { archive, state, journal, effects } = this.#options;
    const { taskId } = task.record;
    const { round } = task;
    // Sessions of it may go again at any time, and then it stays.
    const wanted = (): boolean =>
      state.tasks.get(taskId) === task &&
      isSettled(task) &&
      task.round === round &&
      task.sessions.every((_, i) => isEnded(journal.latest(task, i)));
    if (!wanted()) return;
    effects.start({
      wanted,
      run: async () => {
        await archive.put(
          archived(task),
          task.sessions.filter((record) => record !== undefined),
        );
        if (wanted()) await journal.propose(archivedChange(task));
      },
    });
  }
}

function archived(task: TaskState): ArchivedTask {
  const { spec: _, ...view } = taskView(task);
  return create(ArchivedTaskSchema, { record: task.record, task: view });
}
