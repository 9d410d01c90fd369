import type { ServiceImpl } from '@connectrpc/connect';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import {
  ExportKind,
  type TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { ReconstructorContext } from '../context.ts';
import { build, builderName } from '../domain/build.ts';
import type { Call } from '../domain/call.ts';
import { expand, inOrder } from '../domain/expand.ts';
import { callLine, traceLine } from '../domain/export.ts';

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
    } else {
      for (const call of await callsOf(ctx, session, attempt, signal)) yield { line: callLine(call) };
    }
  },
});

async function callsOf(
  ctx: ReconstructorContext,
  { sessionId }: Session,
  attempt: number,
  signal: AbortSignal,
): Promise<Call[]> {
  const records = await ctx.records.all(sessionId, attempt, signal);
  return expand(inOrder(records, records.length));
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
  const builder = builderName(await ctx.sessions.builder(session, signal));
  return build(builder, await callsOf(ctx, session, attempt, signal)).traces;
}
