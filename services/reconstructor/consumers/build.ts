// `build` work, shared by all reconstructors: records of an attempt to a trajectory in the blob store, then the fact.
import { create } from '@bufbuild/protobuf';
import {
  type AttemptRef,
  type BuildWork,
  BuiltSchema,
  FailedSchema,
  type Work,
  WorkSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { Deadline } from '../../common/clock.ts';
import { failureOf, PolarError } from '../../common/errors.ts';
import { BUILDS_AT_ONCE_MAX } from '../../common/limits.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { attemptOf, publishFact } from '../../common/nats/facts.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import { fromStored } from '../../common/stored.ts';
import type { ReconstructorContext } from '../context.ts';
import type { Build } from '../domain/build.ts';
import { encodeTrajectory } from '../domain/encode.ts';
import { expand, inOrder } from '../domain/expand.ts';
import { readRecord } from '../domain/record.ts';
import { buildFailed, trajectoryBuilt, usageDiffers } from '../events.ts';
import { builderOf } from '../strategies/build-with.ts';

/** Build until the signal aborts. Resolves when all builds have ended. */
export async function consumeBuildWork(ctx: ReconstructorContext, signal: AbortSignal): Promise<void> {
  await consume({
    bus: ctx.bus,
    blobs: ctx.blobs,
    log: ctx.log,
    stream: STREAMS.work.name,
    consumer: CONSUMERS.work('build', '', BUILDS_AT_ONCE_MAX),
    concurrency: BUILDS_AT_ONCE_MAX,
    signal,
    handle: (delivery, stopped) => handle(ctx, delivery, stopped),
    onDead: (delivery, error) => giveUp(ctx, delivery, error, signal),
  });
}

async function handle(ctx: ReconstructorContext, delivery: Delivery, signal: AbortSignal): Promise<void> {
  const { ref, work } = workOf(delivery.bytes);
  const startedAt = performance.now();
  if (work.timeoutMs === 0n) {
    await buildOne(ctx, ref, work, startedAt, signal);
    return;
  }
  using deadline = new Deadline(Number(work.timeoutMs), signal);
  try {
    await buildOne(ctx, ref, work, startedAt, deadline.signal);
  } catch (error) {
    if (!deadline.isOver) throw error;
    throw new PolarError('STAGE_TIMEOUT', `the trajectory was not built in ${work.timeoutMs} ms`, {
      cause: error,
    });
  }
}

async function buildOne(
  ctx: ReconstructorContext,
  ref: AttemptRef,
  work: BuildWork,
  startedAt: number,
  signal: AbortSignal,
): Promise<void> {
  const { strategy, config } = work.builder ?? {};
  const builder = await builderOf(strategy, config, ctx.config.topology.reconstructor);
  const range = work.calls ?? { calls: 0, firstSeq: 0n, lastSeq: 0n };
  const records = await ctx.records.inRange(ref.sessionId, ref.attempt, range, signal, readRecord);
  const built = await builder.build(expand(inOrder(records, range.calls)), signal);
  const { stats, policyVersionMin, policyVersionMax } = built;
  const trajectory = await ctx.blobs.put(encoded(ref, work, builder.name, built), signal);
  const durationMs = Math.round(performance.now() - startedAt);
  const value = create(BuiltSchema, { trajectory, stats, policyVersionMin, policyVersionMax });
  await publishFact(ctx.bus, ctx.blobs, { ref, kind: { case: 'built', value }, durationMs, signal });
  trajectoryBuilt(ctx.log, ref, stats, durationMs);
  if (stats.usageMismatches > 0) usageDiffers(ctx.log, ref, stats.usageMismatches);
}

/** Without outcome and reward, which are known only when the session is graded, too. */
function encoded(ref: AttemptRef, work: BuildWork, builder: string, built: Build): Uint8Array {
  const { sessionId, taskId, sampleIndex, attempt } = ref;
  const trajectory = create(TrajectorySchema, {
    sessionId,
    taskId,
    sampleIndex,
    attempt,
    builder,
    ...(work.builder?.config && { builderConfig: work.builder.config }),
    ...built,
  });
  return encodeTrajectory(trajectory);
}

async function giveUp(
  ctx: ReconstructorContext,
  delivery: Delivery,
  error: PolarError,
  signal: AbortSignal,
): Promise<void> {
  const ref = attemptOf(delivery.bytes);
  if (ref === undefined) return;
  buildFailed(ctx.log, ref, error);
  const value = create(FailedSchema, { failure: failureOf(error), stage: 'build' });
  await publishFact(ctx.bus, ctx.blobs, { ref, kind: { case: 'failed', value }, durationMs: 0, signal });
}

function workOf(bytes: Uint8Array): { readonly ref: AttemptRef; readonly work: BuildWork } {
  let message: Work;
  try {
    message = fromStored(WorkSchema, bytes);
  } catch (error) {
    throw new PolarError('INVALID_REQUEST', 'build work cannot be read', { cause: error });
  }
  const { ref, kind } = message;
  if (ref === undefined || kind.case !== 'build') {
    throw new PolarError('INVALID_REQUEST', 'build work names no attempt, or is of another kind');
  }
  return { ref, work: kind.value };
}
