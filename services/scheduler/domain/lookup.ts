// Finding what a request names.
import { PolarError } from '../../common/errors.ts';
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from '../../common/limits.ts';
import { isTorn, type State, type TaskState } from './state.ts';

/** Throws NOT_FOUND. */
export function taskOf(state: State, taskId: string): TaskState {
  const task = state.tasks.get(taskId);
  if (task === undefined) throw new PolarError('NOT_FOUND', `there is no task ${taskId}`);
  return task;
}

/** The task to be shown as it is in memory: not one that is coming back from the archive, whose sessions have ended there. */
export function shownTask(state: State, taskId: string): TaskState | undefined {
  const task = state.tasks.get(taskId);
  return task !== undefined && isTorn(task) ? undefined : task;
}

/** Throws INVALID_REQUEST above PAGE_SIZE_MAX. */
export function pageSizeOf(asked: number): number {
  if (asked <= PAGE_SIZE_MAX) return asked === 0 ? PAGE_SIZE_DEFAULT : asked;
  throw invalid('page_size', `must be at most ${PAGE_SIZE_MAX}, not ${asked}`);
}

/** A request whose field cannot be used. */
export const invalid = (field: string, description: string): PolarError =>
  new PolarError('INVALID_REQUEST', `${field} ${description}`, { fields: [{ field, description }] });
