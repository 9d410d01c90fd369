// Which tasks a list is asked for.
import type { Task } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { TaskFilter } from '../../../gen/ts/polar/scheduler/v1/task_filter_pb.js';
import { invalid } from './lookup.ts';
import { harnessOf, Outcome, SessionState } from './session.ts';
import type { TaskState } from './state.ts';

const NAME_CHARS_MAX = 128;

/** What a filter asks of a task. */
export interface Filtered {
  readonly taskId: string;
  readonly harness: string;
  readonly hasState: (state: SessionState) => boolean;
  readonly hasOutcome: (outcome: Outcome) => boolean;
}

/** Throws INVALID_REQUEST. */
export function wantedBy(filter: TaskFilter | undefined): (task: Filtered) => boolean {
  if (filter === undefined) return () => true;
  const { harness, state, outcome } = filter;
  if (filter.nameContains.length > NAME_CHARS_MAX) {
    throw invalid('filter.name_contains', `must have at most ${NAME_CHARS_MAX} characters`);
  }
  const part = filter.nameContains.toLowerCase();
  return (task) =>
    task.taskId.toLowerCase().includes(part) &&
    (harness === '' || task.harness === harness) &&
    (state === SessionState.UNSPECIFIED || task.hasState(state)) &&
    (outcome === Outcome.UNSPECIFIED || task.hasOutcome(outcome));
}

/** Of one in memory, without its view: a filter may look at all of them. */
export const liveFiltered = ({ record, spec, byState, byOutcome }: TaskState): Filtered => ({
  taskId: record.taskId,
  harness: harnessOf(spec),
  hasState: (state) => (byState.get(state) ?? 0) > 0,
  hasOutcome: (outcome) => (byOutcome.get(outcome) ?? 0) > 0,
});

/** Of one as it was shown last. */
export const shownFiltered = ({ taskId, harness, sessionsByState, sessionsByOutcome }: Task): Filtered => ({
  taskId,
  harness,
  hasState: (state) => some(sessionsByState, SessionState[state]),
  hasOutcome: (outcome) => some(sessionsByOutcome, Outcome[outcome]),
});

const some = (counts: Readonly<Record<string, number>>, name: string | undefined): boolean =>
  (counts[name?.toLowerCase() ?? ''] ?? 0) > 0;

/** The first `count` that are wanted, and no look at those behind them. */
export function firstOf<T>(items: Iterable<T>, wanted: (item: T) => boolean, count: number): T[] {
  const found: T[] = [];
  for (const item of items) {
    if (wanted(item) && found.push(item) >= count) break;
  }
  return found;
}
