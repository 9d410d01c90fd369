// `evaluate` work of this node: each becomes one fact, `evaluated` or `failed`.
import { type AttemptRef, type EvaluateWork, WorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failureOf, PolarError, type Reason } from '../../common/errors.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { attemptOf, publishFact } from '../../common/nats/facts.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import { fromStored } from '../../common/stored.ts';
import type { EvaluatorContext } from '../context.ts';
import { Tries } from '../domain/tries.ts';
import { verdictOf } from '../evaluations/verdict.ts';
import type { Verdict } from '../evaluators/evaluator.ts';
import * as events from '../events.ts';

/** What can be otherwise a moment later, here; every other failure ends the attempt's evaluation. */
const TRIED_AGAIN: readonly Reason[] = ['SANDBOX_FAILED', 'RECORDS_MISSING', 'JUDGE_UNAVAILABLE'];

/** Pull until the signal aborts; resolves when the evaluations have ended. */
export async function consumeEvaluateWork(ctx: EvaluatorContext, signal: AbortSignal): Promise<void> {
  const { bus, blobs, log, done, places } = ctx;
  const { id, max_postrun_workers: workers } = ctx.config.node;
  const consumer = CONSUMERS.work('evaluate', id, workers);
  await consume({
    bus,
    blobs,
    log,
    signal,
    stream: STREAMS.work.name,
    consumer,
    // All that can be delivered is held, so that what waits for a slot here is not delivered again.
    concurrency: consumer.max_ack_pending ?? workers,
    handle: async (delivery) => {
      const { ref, work } = evaluateWorkOf(delivery);
      await done.run(keyOf(ref), () => places.live(() => evaluate(ctx, ref, work, signal)));
    },
    onDead: async ({ bytes }, error) => {
      const ref = attemptOf(bytes);
      if (ref === undefined) return;
      await publishFailed(ctx, ref, error, 0, signal);
    },
  });
}

const keyOf = ({ sessionId, attempt }: AttemptRef): string => `${sessionId}.${attempt}`;

function evaluateWorkOf({ bytes }: Delivery): { ref: AttemptRef; work: EvaluateWork } {
  const { ref, kind } = fromStored(WorkSchema, bytes);
  if (ref === undefined || kind.case !== 'evaluate') {
    throw new PolarError('INVALID_REQUEST', 'this is no evaluate work');
  }
  return { ref, work: kind.value };
}

async function evaluate(
  ctx: EvaluatorContext,
  ref: AttemptRef,
  work: EvaluateWork,
  signal: AbortSignal,
): Promise<void> {
  const tries = ctx.tries.get(keyOf(ref), () => new Tries<Verdict>());
  const budgetMs = Number(work.timeoutMs);
  const startedAt = performance.now();
  const verdict = await verdictOf(ctx, { ref, work, kept: tries }, tries.leftMs(budgetMs), signal);
  const durationMs = Math.round(performance.now() - startedAt);
  // Left to the next evaluator.
  signal.throwIfAborted();
  if (verdict instanceof PolarError) {
    const failure = tries.failed(verdict, durationMs);
    if (TRIED_AGAIN.includes(verdict.reason) && tries.leftMs(budgetMs) > 0) throw failure;
    return await publishFailed(ctx, ref, failure, durationMs, signal);
  }
  events.evaluated(ctx.log, ref, { reward: verdict.reward, duration_ms: durationMs });
  const { changes } = tries;
  const kind = { case: 'evaluated', value: { ...verdict, ...(changes && { changes }) } } as const;
  await publishFact(ctx.bus, ctx.blobs, { ref, kind, durationMs, signal });
  ctx.tries.delete(keyOf(ref));
}

async function publishFailed(
  { bus, blobs, log, tries }: EvaluatorContext,
  ref: AttemptRef,
  error: PolarError,
  durationMs: number,
  signal: AbortSignal,
): Promise<void> {
  const failure = failureOf(error);
  events.evaluationFailed(log, ref, failure.reason, failure.message);
  const { changes } = tries.get(keyOf(ref), () => new Tries<Verdict>());
  const value = { failure, stage: 'evaluate', ...(changes && { changes }) };
  const kind = { case: 'failed', value } as const;
  await publishFact(bus, blobs, { ref, kind, durationMs, signal });
  tries.delete(keyOf(ref));
}
