// What an evaluation of a session that has ended is to do.
import { create } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import { Outcome, type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { BudgetsSchema, type EvaluatorSpec, type TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { Graded } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import {
  type AttemptRef,
  AttemptRefSchema,
  type EvaluateWork,
  EvaluateWorkSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { readEvaluator } from '../../common/specs/evaluator-alone.ts';

const RUN_TO_AN_END: readonly Outcome[] = [Outcome.COMPLETED, Outcome.TIMEOUT, Outcome.HARNESS_ERROR];

/** Throws NOT_ENDED. */
export function checkEnded({ sessionId, state }: Session): void {
  if (state === SessionState.ENDED) return;
  const now = SessionState[state]?.toLowerCase();
  throw new PolarError('NOT_ENDED', `session ${sessionId} has not ended: it is ${now}`);
}

/** How the run ended, also where it was the evaluation that failed, as `graded` tells then. Throws NOTHING_TO_GRADE. */
export async function outcomeOf(
  { sessionId, outcome, stats }: Session,
  graded: () => Promise<Graded | undefined>,
): Promise<Outcome> {
  if (RUN_TO_AN_END.includes(outcome)) return outcome;
  const ran = outcome === Outcome.TASK_ERROR && stats !== undefined ? (await graded())?.outcome : undefined;
  if (ran !== undefined && RUN_TO_AN_END.includes(ran)) return ran;
  const message = `session ${sessionId} ended as ${Outcome[outcome]}: it has no run that is kept to be graded`;
  throw new PolarError('NOTHING_TO_GRADE', message);
}

export const refOf = ({ sessionId, attempt, taskId, sampleIndex }: Session, nodeId: string): AttemptRef =>
  create(AttemptRefSchema, { sessionId, attempt, taskId, sampleIndex, nodeId });

/** By the evaluator that is given, else by the task's. Throws INVALID_TASK with every fault of it. */
export function workAgain(
  { stats }: Session,
  spec: TaskSpec,
  outcome: Outcome,
  given: EvaluatorSpec | undefined,
): EvaluateWork {
  const { evaluator, budgets } = given === undefined ? spec : checked(spec, given);
  if (evaluator === undefined) {
    const description = `task ${spec.taskId} has none: one is to be given`;
    throw faulty('INVALID_TASK', 'the evaluator', [{ field: 'evaluator', description }]);
  }
  return create(EvaluateWorkSchema, {
    evaluator,
    ...(spec.runtime && { runtime: spec.runtime }),
    outcome,
    timeoutMs: BigInt(Math.ceil(budgets?.evaluate === undefined ? 0 : durationMs(budgets.evaluate))),
    // Where they begin and end is told by the store.
    calls: { calls: stats?.calls ?? 0 },
    instruction: spec.instruction,
    ...(spec.metadata && { metadata: spec.metadata }),
  });
}

/** As at submit, with the time that it grants itself, and no less than the task gave its own. */
function checked(spec: TaskSpec, evaluator: EvaluatorSpec): Pick<TaskSpec, 'evaluator' | 'budgets'> {
  const { prepare, evaluate } = spec.budgets ?? create(BudgetsSchema);
  const { budget, faults } = readEvaluator(evaluator, prepare);
  if (faults.length > 0) throw faulty('INVALID_TASK', 'the evaluator', faults);
  const isLonger = evaluate !== undefined && durationMs(evaluate) > durationMs(budget);
  return { evaluator, budgets: create(BudgetsSchema, { evaluate: isLonger ? evaluate : budget }) };
}
