import type { ServiceImpl } from '@connectrpc/connect';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { TraceReward } from '../../../gen/ts/polar/event/v1/work_pb.js';
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
import { bodiesOf, messagesLine, recordLine, summaryLine } from '../domain/export-records.ts';
import { imageLines } from '../domain/images.ts';
import { trajectoryLost } from '../events.ts';
import { builderOf } from '../strategies/build-with.ts';

/** Of the message of a group: lost with a disk, or unreadable. */
const GONE: readonly string[] = ['BLOB_MISSING', 'RECORDS_INVALID'];

export const exportSession = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'exportSession'> => ({
  async *exportSession({ sessionId, kind, attempt: given }, { signal }) {
    const session = await ctx.sessions.get(sessionId, signal);
    const attempt = given === 0 ? session.attempt : given;
    if (attempt > session.attempt) {
      throw new PolarError('NOT_FOUND', `session ${sessionId} has no attempt ${attempt}`);
    }
    const open = () => linesOf(ctx, { session, attempt, kind }, signal);
    for await (const line of ctx.exports.run(open, signal)) yield { line };
  },
});

interface Export {
  readonly session: Session;
  readonly attempt: number;
  readonly kind: ExportKind;
}

/** One at a time: all prompts of a long session together are many times its records. */
async function linesOf(
  ctx: ReconstructorContext,
  { session, attempt, kind }: Export,
  signal: AbortSignal,
): Promise<Iterator<string>> {
  if (kind === ExportKind.TRACES) {
    return (await tracesOf(ctx, session, attempt, signal)).values().map(traceLine);
  }
  const records = await recordsOf(ctx, session, attempt, signal);
  if (kind === ExportKind.CALLS) checkKept(session, attempt, records);
  if (kind === ExportKind.IMAGES) return imageLines(bodiesOf(records).values());
  if (kind === ExportKind.SUMMARIES) return records.values().map(summaryLine);
  const rewards = kind === ExportKind.CALLS ? await rewardsOf(ctx, session, attempt, signal) : [];
  return expand(records)
    .values()
    .map(lines(kind, records, rewards));
}

/** What writes the line of a call, which is made of the record with the same place. */
function lines(
  kind: ExportKind,
  records: readonly Completion[],
  rewards: readonly TraceReward[],
): (call: Call, place: number) => string {
  if (kind === ExportKind.RECORDS) return (call, i) => recordLine(call, records[i] as Completion);
  if (kind !== ExportKind.MESSAGES) {
    const byCall = new Map(rewards.map(({ callId, reward }) => [callId, reward]));
    return (call) => callLine(call, byCall.get(call.callId));
  }
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

/** Calls that are not all there are no session's: laws and builders would be told a falsehood. */
function checkKept(
  { sessionId, attempt: counts, stats }: Session,
  attempt: number,
  records: Completion[],
): void {
  const calls = attempt === counts ? (stats?.calls ?? 0) : 0;
  if (records.length >= calls) return;
  throw new PolarError(
    'RECORDS_MISSING',
    `${calls - records.length} of the ${calls} recorded calls of session ${sessionId} are gone: what every consumer has acknowledged is removed after retention.acked_days`,
  );
}

/** Of its calls; none where what would tell them is gone: the calls are all there. */
async function rewardsOf(
  ctx: ReconstructorContext,
  session: Session,
  attempt: number,
  signal: AbortSignal,
): Promise<readonly TraceReward[]> {
  try {
    const ended = await endedOf(ctx, session, attempt, signal);
    return ended?.result.traceRewards ?? [];
  } catch (thrown) {
    const error = asPolarError(thrown);
    if (!GONE.includes(error.reason)) throw error;
    trajectoryLost(ctx.log, session.sessionId, error);
    return [];
  }
}

/** How the attempt ended, where it is the one that counts; undefined while it or its group has not. */
async function endedOf(
  ctx: ReconstructorContext,
  session: Session,
  attempt: number,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<ReconstructorContext['sessions']['ended']>> | undefined> {
  const ended = await ctx.sessions.ended(session, signal).catch((error: unknown) => {
    if (asPolarError(error).reason !== 'NOT_ENDED') throw error;
    return undefined;
  });
  return ended?.result.attempt === attempt ? ended : undefined;
}

/** Those of the trajectory where there is one; else what its builder makes of the records so far. */
async function tracesOf(
  ctx: ReconstructorContext,
  session: Session,
  attempt: number,
  signal: AbortSignal,
): Promise<Trace[]> {
  const ended = await endedOf(ctx, session, attempt, signal);
  if (ended?.result.trajectory !== undefined) {
    return (await ctx.batches.trajectory(ended.group, ended.result, signal)).traces;
  }
  const { strategy, config } = (await ctx.sessions.builder(session, signal)) ?? {};
  const builder = await builderOf(strategy, config, ctx.config.topology.reconstructor);
  const records = await recordsOf(ctx, session, attempt, signal);
  checkKept(session, attempt, records);
  return (await builder.build(expand(records), signal)).traces;
}
