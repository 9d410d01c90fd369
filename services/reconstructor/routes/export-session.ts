import type { ServiceImpl } from '@connectrpc/connect';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import {
  ExportKind,
  type TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { ReconstructorContext } from '../context.ts';
import type { Call } from '../domain/call.ts';
import { expand, inOrder } from '../domain/expand.ts';
import { callLine, traceLine } from '../domain/export.ts';
import { bodiesOf, messagesLine, recordLine } from '../domain/export-records.ts';
import { builderOf } from '../strategies/build-with.ts';

export const exportSession = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'exportSession'> => ({
  async *exportSession({ sessionId, kind, attempt: asked }, { signal }) {
    const session = await ctx.sessions.get(sessionId, signal);
    const attempt = asked === 0 ? session.attempt : asked;
    if (attempt > session.attempt) {
      throw new PolarError('NOT_FOUND', `session ${sessionId} has no attempt ${attempt}`);
    }
    // One line at a time: all prompts of a long session together are many times its records.
    if (kind === ExportKind.TRACES) {
      for (const trace of await tracesOf(ctx, session, attempt, signal)) yield { line: traceLine(trace) };
      return;
    }
    const records = await recordsOf(ctx, session, attempt, signal);
    const lineOf = lines(kind, records);
    for (const [i, call] of expand(records).entries()) yield { line: lineOf(call, i) };
  },
});

/** What writes the line of a call, which is made of the record with the same place. */
function lines(kind: ExportKind, records: readonly Completion[]): (call: Call, place: number) => string {
  if (kind === ExportKind.RECORDS) return (call, i) => recordLine(call, records[i] as Completion);
  if (kind !== ExportKind.MESSAGES) return callLine;
  const bodies = bodiesOf(records);
  return (call, i) => messagesLine(call, records[i] as Completion, bodies);
}

async function recordsOf(
  ctx: ReconstructorContext,
  { sessionId }: Session,
  attempt: number,
  signal: AbortSignal,
): Promise<Completion[]> {
  const records = await ctx.records.all(sessionId, attempt, signal);
  return inOrder(records, records.length);
}

/** Those of the trajectory where there is one; else what its builder makes of the records so far. */
async function tracesOf(
  ctx: ReconstructorContext,
  session: Session,
  attempt: number,
  signal: AbortSignal,
): Promise<Trace[]> {
  const ended = await ctx.sessions.ended(session, signal).catch((error: unknown) => {
    if (asPolarError(error).reason !== 'NOT_ENDED') throw error;
    return undefined;
  });
  if (ended?.result.trajectory !== undefined && ended.result.attempt === attempt) {
    return (await ctx.batches.trajectory(ended.group, ended.result, signal)).traces;
  }
  const { strategy, config } = (await ctx.sessions.builder(session, signal)) ?? {};
  const builder = await builderOf(strategy, config, ctx.config.topology.reconstructor);
  const calls = expand(await recordsOf(ctx, session, attempt, signal));
  return (await builder.build(calls, signal)).traces;
}
