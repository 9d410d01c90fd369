// A scheduler's state in the hand of a test: a task, its sessions as they begin and end, and the state as a snapshot keeps it.
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { SessionStatsSchema } from '../../gen/ts/polar/common/v1/session_pb.js';
import { TaskSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { ChangeSchema, CommitSchema, type SessionRecord } from '../../gen/ts/polar/event/v1/state_pb.js';
import { BuiltSchema, EvaluatedSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { failure } from '../../services/common/errors.ts';
import { dispatched, ended, Outcome, sessionOf } from '../../services/scheduler/domain/session.ts';
import { State, type TaskState } from '../../services/scheduler/domain/state.ts';
import { specDigest, taskRecord } from '../../services/scheduler/domain/task.ts';

type SpecInit = Exclude<MessageInitShape<typeof TaskSpecSchema>, { $typeName: string }>;

/** A state with the task `t`. */
export function stateWith(over: SpecInit = {}, numSamples = 3): { state: State; task: TaskState } {
  const state = new State();
  const spec = create(TaskSpecSchema, { taskId: 't', numSamples, harness: { name: 'shell' }, ...over });
  const value = taskRecord({
    ...{ spec, filesRef: undefined, specSha256: specDigest(spec), requestId: 't' },
    ...{ sessionPrefix: 's', createMs: 1_000 },
  });
  state.apply(create(ChangeSchema, { kind: { case: 'task', value } }));
  return { state, task: state.tasks.get('t') as TaskState };
}

export const set = (state: State, record: SessionRecord): void =>
  void state.apply(create(ChangeSchema, { kind: { case: 'session', value: record } }));
export const begun = (state: State, task: TaskState, i: number, nowMs = 2_000): SessionRecord =>
  dispatched(state.session(task, i), { nodeId: 'n', bootId: 'b' }, nowMs);
export const away = failure('SANDBOX_FAILED', 'away');

export function end(
  state: State,
  task: TaskState,
  i: number,
  outcome: Outcome,
  nowMs = 3_000,
  tokens = 5n,
): void {
  const record = begun(state, task, i);
  const session = { ...sessionOf(record), stats: create(SessionStatsSchema, { trainedTokens: tokens }) };
  const built = create(BuiltSchema, {});
  const graded = { ...record, session, built, evaluated: create(EvaluatedSchema, { reward: 1 }) };
  set(state, ended(graded, outcome, nowMs, outcome === Outcome.COMPLETED ? undefined : away));
}

/** The state as a scheduler reads it from a snapshot. */
export function reread(state: State): State {
  const bytes = toBinary(CommitSchema, create(CommitSchema, { changes: [...state.changes()] }));
  const again = new State();
  for (const change of fromBinary(CommitSchema, bytes).changes) again.apply(change);
  return again;
}
