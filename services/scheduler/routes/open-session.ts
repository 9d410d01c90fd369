// OpenSession: gives a session to who works on it elsewhere; answers when that is committed and its key is valid.
import { durationMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { openaiUrl, sessionEnv, sessionUrl } from '../../common/endpoint.ts';
import { PolarError } from '../../common/errors.ts';
import { newSecret } from '../../common/ids.ts';
import { isExternal } from '../../common/specs/external.ts';
import { archivedTaskOf } from '../archive/lookup.ts';
import { whole } from '../archive/whole.ts';
import type { SchedulerContext } from '../context.ts';
import type { Found } from '../dispatch/board.ts';
import { unixMs } from '../dispatch/clock.ts';
import { budgetMs } from '../domain/budgets.ts';
import {
  expireMs,
  isOpenBy,
  keyFor,
  type OpenRequest,
  opened,
  placeFor,
  requestIdFault,
  sessionFor,
} from '../domain/external.ts';
import { overError } from '../domain/external-end.ts';
import { invalid } from '../domain/lookup.ts';
import { leaseFault } from '../domain/open-leases.ts';
import { isOpen, sessionOf } from '../domain/session.ts';
import type { TaskState } from '../domain/state.ts';

type Routes = Pick<ServiceImpl<typeof RolloutService>, 'openSession'>;

export function openSession(ctx: SchedulerContext): Routes {
  const { board, outbox } = ctx;
  return {
    async openSession({ taskId, requestId: given, lease }) {
      const fault = requestIdFault(given);
      if (fault !== undefined) throw invalid('request_id', fault);
      const leaseMs = lease === undefined ? 0 : Math.ceil(durationMs(lease));
      const wrong = lease && leaseFault(leaseMs);
      if (wrong !== undefined) throw invalid('lease', wrong);
      const task = await externalTask(ctx, taskId);
      board.journal.admit();
      const requestId = given || newSecret();
      const sampleIndex = await opening(ctx, task, { requestId, leaseMs });
      const record = board.state.session(task, sampleIndex);
      // Since its commit it may have been lost, or cancelled.
      if (!isOpenBy(record, requestId)) throw overError(record);
      await board.journal.within(outbox.grant({ task, record }));
      return answerOf(ctx, { task, record }, requestId);
    },
  };
}

/** Throws NOT_FOUND, NO_SESSION_WAITS, INVALID_REQUEST. */
async function externalTask(ctx: SchedulerContext, taskId: string): Promise<TaskState> {
  const { state } = ctx.board;
  await whole(ctx, state.tasks.get(taskId));
  const task = state.tasks.get(taskId);
  if (task === undefined) {
    await archivedTaskOf(ctx.archive, taskId);
    throw new PolarError('NO_SESSION_WAITS', `all sessions of ${taskId} have ended: submit another task`);
  }
  if (isExternal(task.spec)) return task;
  const description = `names a task of harness ${task.spec.harness?.name}, which the mesh starts itself: only sessions of harness external are opened`;
  throw invalid('task_id', description);
}

/** The sample index of its session, once it is committed that the request has that. Throws SESSION_CLOSED, NO_SESSION_WAITS, NO_NODE. */
async function opening(ctx: SchedulerContext, task: TaskState, request: OpenRequest): Promise<number> {
  const { board, engines } = ctx;
  const { journal, nodes, state } = board;
  const records = task.sessions.map((_, i) => journal.latest(task, i));
  const record = sessionFor(records, request.requestId);
  if (!isOpen(record)) {
    const able = nodes.healthy.filter(({ id }) => !state.isDraining(id));
    const isFull = ({ id }: { id: string }): boolean =>
      engines.full(id, (one) => nodes.get(one)) !== undefined;
    const { node, bootId } = placeFor(able, isFull);
    const place = { nodeId: node.id, bootId };
    const next = opened(record, place, request, unixMs());
    await journal.within(board.change({ task, record }, next));
  }
  await journal.within(journal.settled());
  return sessionOf(record).sampleIndex;
}

function answerOf({ board }: SchedulerContext, { task, record }: Found, requestId: string) {
  const session = sessionOf(record);
  const { sessionId, taskId, nodeId } = session;
  const proxyUrl = board.nodes.get(nodeId)?.heartbeat?.proxyUrl ?? '';
  if (proxyUrl === '') throw new PolarError('NO_NODE', `node ${nodeId} has not been heard since; call again`);
  const { instruction } = task.spec;
  const at = { proxyUrl, capability: keyFor(requestId, session), sessionId, taskId, instruction };
  return {
    session,
    apiKey: at.capability,
    openaiUrl: openaiUrl(at),
    baseUrl: sessionUrl(at),
    expireTime: timestampFromMs(expireMs(record, budgetMs(task.spec, 'run'))),
    env: sessionEnv(at),
    instruction,
  };
}
