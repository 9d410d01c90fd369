// `evaluate` work of this node: each becomes one fact, `evaluated` or `failed`.
import { type AttemptRef, type EvaluateWork, WorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { Deadline, Semaphore } from '../../common/clock.ts';
import { asPolarError, failureOf, PolarError, type Reason } from '../../common/errors.ts';
import { EVALUATE_GRACE_MS } from '../../common/limits.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { attemptOf, publishFact } from '../../common/nats/facts.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import { fromStored } from '../../common/stored.ts';
import type { EvaluatorContext } from '../context.ts';
import { Tries } from '../domain/tries.ts';
import type { Evaluation, Verdict } from '../evaluators/evaluator.ts';
import { evaluatorOf } from '../evaluators/index.ts';
import * as events from '../events.ts';

/** What can be otherwise a moment later, here; every other failure ends the attempt's evaluation. */
const TRIED_AGAIN: readonly Reason[] = ['SANDBOX_FAILED', 'RECORDS_MISSING', 'JUDGE_UNAVAILABLE'];

/** Pull until the signal aborts; resolves when the evaluations have ended. */
export async function consumeEvaluateWork(ctx: EvaluatorContext, signal: AbortSignal): Promise<void> {
  const { bus, blobs, log, done } = ctx;
  const { id, max_postrun_workers: workers } = ctx.config.node;
  const slots = new Semaphore(workers);
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
      await done.run(keyOf(ref), () => slots.run(() => evaluate(ctx, ref, work, signal)));
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
  const kind = { case: 'evaluated', value: verdict } as const;
  await publishFact(ctx.bus, ctx.blobs, { ref, kind, durationMs, signal });
  ctx.tries.delete(keyOf(ref));
}

async function verdictOf(
  ctx: EvaluatorContext,
  { ref, work, kept }: Omit<Evaluation, 'remainingMs'>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Verdict | PolarError> {
  const until = performance.now() + timeoutMs;
  using deadline = new Deadline(timeoutMs + EVALUATE_GRACE_MS, signal);
  const limited = deadline.signal;
  try {
    const evaluation = { ref, work, kept, remainingMs: () => until - performance.now() };
    return await evaluatorOf(work.evaluator?.strategy ?? '').evaluate(ctx, evaluation, limited);
  } catch (error) {
    if (!limited.aborted) return asPolarError(error);
    return new PolarError('EVALUATION_TIMEOUT', 'the evaluate budget was spent', { cause: error });
  }
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
  const kind = { case: 'failed', value: { failure, stage: 'evaluate' } } as const;
  await publishFact(bus, blobs, { ref, kind, durationMs, signal });
  tries.delete(keyOf(ref));
}
