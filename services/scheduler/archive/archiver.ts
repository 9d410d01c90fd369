// Takes settled tasks out of memory: written to the archive, committed as archived, dropped. Its effects have slots of their
// own: an archive that cannot be written holds up nothing else.
import { create } from '@bufbuild/protobuf';
import { type ArchivedTask, ArchivedTaskSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { Effects } from '../dispatch/effects.ts';
import { isEnded } from '../domain/session.ts';
import { allEnded, archivedChange, isSettled, isTorn, type State, type TaskState } from '../domain/state.ts';
import { taskView } from '../domain/view.ts';
import type { Journal } from '../journal/journal.ts';
import type { Archive } from './archive.ts';
import { archivedChanges } from './lookup.ts';

export interface ArchiverOptions {
  readonly archive: Archive;
  readonly state: State;
  readonly journal: Journal;
  /** For this alone. */
  readonly effects: Effects;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  /** How many hold each task. */
  readonly #held = new Map<string, number>();

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
      !this.#held.has(taskId) &&
      isSettled(task) &&
      allEnded(task) &&
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

  /**
   * Keeps a task in memory, or one that comes back into it, until it is disposed of: whoever proposes something for its ended
   * sessions meanwhile finds it there, once what was proposed before is committed.
   */
  hold(taskId: string): Disposable {
    this.#held.set(taskId, (this.#held.get(taskId) ?? 0) + 1);
    return { [Symbol.dispose]: () => this.#release(taskId) };
  }

  #release(taskId: string): void {
    const others = (this.#held.get(taskId) ?? 1) - 1;
    if (others > 0) {
      this.#held.set(taskId, others);
      return;
    }
    this.#held.delete(taskId);
    const task = this.#options.state.tasks.get(taskId);
    if (task !== undefined) this.check(task);
  }

  /** To be called at a take-over: a kill has left out sessions of a task that was coming back into memory. */
  complete(task: TaskState): void {
    const { archive, state, journal, effects } = this.#options;
    const { taskId } = task.record;
    effects.start({
      wanted: () => state.tasks.get(taskId) === task && isTorn(task),
      run: async () => {
        const changes = await archivedChanges(archive, taskId);
        await journal.proposeParts(changes ?? [[archivedChange(task)]]);
      },
    });
  }

  /** Resolves when nothing is being written, once the signal has aborted. */
  async idle(): Promise<void> {
    await this.#options.effects.idle();
  }
}

function archived(task: TaskState): ArchivedTask {
  const { spec: _, ...view } = taskView(task);
  return create(ArchivedTaskSchema, { record: task.record, task: view });
}
