// What is graded again: a session that has ended, by what the mesh still has of it.
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { EvaluatorSpec, TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { StoredChangesSchema } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import {
  type AttemptRef,
  type EvaluateWork,
  type GroupReady,
  GroupReadySchema,
  type SessionResult,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { abortable } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import { checkOut, withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { fromStored } from '../../common/stored.ts';
import type { EvaluatorContext } from '../context.ts';
import type { Stored } from '../evaluators/evaluator.ts';
import { checkEnded, outcomeOf, refOf, workAgain } from './work-again.ts';

export interface Again {
  readonly session: Session;
  readonly ref: AttemptRef;
  readonly work: EvaluateWork;
  readonly stored: Stored;
}

/** Throws NOT_FOUND, NOT_ENDED, NOTHING_TO_GRADE, and INVALID_TASK for the evaluator that is given. */
export async function againOf(
  ctx: EvaluatorContext,
  sessionId: string,
  given: EvaluatorSpec | undefined,
  signal: AbortSignal,
): Promise<Again> {
  const session = await sessionOf(ctx, sessionId, signal);
  checkEnded(session);
  const spec = await abortable(specOf(ctx, session.taskId), signal);
  // Once for all who ask: groups may be large.
  let reading: Promise<SessionResult | undefined> | undefined;
  const result = async (): Promise<SessionResult | undefined> => {
    reading ??= resultOf(ctx, session, signal);
    return await reading;
  };
  const outcome = await outcomeOf(session, async () => (await result())?.graded);
  const { config } = ctx;
  return {
    session,
    ref: refOf(session, config.node.id),
    work: workAgain(session, spec, outcome, given),
    stored: { changes: async (stop) => await changesOf(ctx, session, await result(), stop) },
  };
}

async function sessionOf({ ask }: EvaluatorContext, sessionId: string, signal: AbortSignal) {
  const options = { signal, timeoutMs: RPC_TIMEOUT_MS };
  const { session } = await ask((scheduler) => scheduler.getSession({ sessionId }, options), signal);
  if (session === undefined) throw new PolarError('NOT_FOUND', `there is no session ${sessionId}`);
  return session;
}

/** Asked for once by all sessions of a task that are graded together: with its files it may have many megabytes. */
const specOf = ({ ask, specs, stopping }: EvaluatorContext, taskId: string): Promise<TaskSpec> =>
  specs.get(taskId, async () => {
    const options = { signal: stopping, timeoutMs: RPC_TIMEOUT_MS };
    const { spec } = await ask((scheduler) => scheduler.getTaskSpec({ taskId }, options), stopping);
    if (spec === undefined) throw new PolarError('NOT_FOUND', `there is no task ${taskId}`);
    return spec;
  });

async function changesOf(
  { blobs }: EvaluatorContext,
  { sessionId, attempt }: Session,
  result: SessionResult | undefined,
  signal: AbortSignal,
) {
  const ref = result?.attempt === attempt ? result.graded?.changes : undefined;
  if (ref === undefined) {
    const why =
      'its group has not ended yet, or is gone by retention.acked_days; it was graded without changes, or by a version that kept none; or they could not be kept';
    throw new PolarError(
      'NOTHING_TO_GRADE',
      `no changes are stored of session ${sessionId}, which its evaluator needs: ${why}`,
    );
  }
  return fromStored(StoredChangesSchema, await blobs.get(ref, signal));
}

/** As its group was announced; undefined where that is not there. Throws BLOB_MISSING, RECORDS_INVALID. */
async function resultOf(
  ctx: EvaluatorContext,
  { sessionId, taskId, groupId }: Session,
  signal: AbortSignal,
): Promise<SessionResult | undefined> {
  const { bus, blobs } = ctx;
  const query = { last_by_subj: subjects.trajectory(taskId, groupId) };
  const message = await withRetry('read a group', signal, () =>
    bus.jsm.streams.getMessage(STREAMS.trajectories.name, query).catch(orNone),
  );
  if (message === undefined) return undefined;
  const bytes = await checkOut(blobs, { data: message.data, headers: message.header }, signal);
  return groupIn(bytes, groupId).sessions.find((one) => one.sessionId === sessionId);
}

function groupIn(bytes: Uint8Array, groupId: string): GroupReady {
  try {
    return fromStored(GroupReadySchema, bytes);
  } catch (error) {
    throw new PolarError('RECORDS_INVALID', `group ${groupId} cannot be read`, { cause: error });
  }
}

function orNone(error: Error): undefined {
  if (!/no message|message not found|404/i.test(error.message)) throw error;
  return undefined;
}
