// `prepare` work of this node: make and prepare the sandbox of an attempt, tell the scheduler.
import {
  type AttemptRef,
  type PrepareWork,
  type Work,
  WorkSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, failureOf, type PolarError } from '../../common/errors.ts';
import { LEASE_MAX_MS, LEASE_MIN_MS, PREPARE_DEFAULT_MS } from '../../common/limits.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { attemptOf, type FactOptions, publishFact } from '../../common/nats/facts.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import { Once } from '../../common/once.ts';
import { fromStored } from '../../common/stored.ts';
import type { Runtime, RuntimePrewarmContext } from '../context.ts';
import { given } from '../domain/fence.ts';
import * as events from '../events.ts';

/** Runs until the signal aborts. */
export async function consumePrepareWork(ctx: RuntimePrewarmContext, signal: AbortSignal): Promise<void> {
  const { bus, blobs, log, config } = ctx;
  const once = new Once();
  await consume({
    bus,
    blobs,
    log,
    stream: STREAMS.work.name,
    consumer: CONSUMERS.work('prepare', config.node.id, config.node.max_init_workers),
    concurrency: config.node.max_init_workers,
    signal,
    handle: (delivery) => handle(ctx, once, delivery, signal),
    onDead: async ({ bytes }, error) => {
      const ref = attemptOf(bytes);
      if (ref !== undefined) await publishFailed(ctx, ref, error, 0, signal);
    },
  });
}

async function handle(
  ctx: RuntimePrewarmContext,
  once: Once,
  { bytes }: Delivery,
  signal: AbortSignal,
): Promise<void> {
  const { ref, kind }: Work = fromStored(WorkSchema, bytes);
  if (ref === undefined || kind.case !== 'prepare')
    return events.workDropped(ctx.log, ref, 'not prepare work');
  if (ref.bootId !== ctx.bootId) return events.workDropped(ctx.log, ref, 'for another boot of this node');
  ctx.fence = given(ctx.fence);
  const { value } = kind;
  // While NATS is away it takes the work for undone, and gives it again when it is back.
  await once.run(`${ref.sessionId}.${ref.attempt}.${ref.bootId}`, () => answer(ctx, ref, value, signal));
}

async function answer(
  ctx: RuntimePrewarmContext,
  ref: AttemptRef,
  work: PrepareWork,
  signal: AbortSignal,
): Promise<void> {
  const begin = performance.now();
  let runtime: Runtime;
  try {
    // A redelivery: the fact was not stored.
    runtime = ctx.runtimes.ofAttempt(ref) ?? (await prepare(ctx, ref, work, signal));
  } catch (error) {
    signal.throwIfAborted();
    await publishFailed(ctx, ref, asPolarError(error), performance.now() - begin, signal);
    return;
  }
  await publish(ctx, {
    ref,
    durationMs: performance.now() - begin,
    kind: { case: 'ready', value: { runtimeId: runtime.id, proxyUrl: runtime.proxyUrl } },
    denied: runtime.denied,
    signal,
  });
}

async function prepare(
  ctx: RuntimePrewarmContext,
  ref: AttemptRef,
  { runtime: spec, timeoutMs, leaseMs, evaluateTimeoutMs }: PrepareWork,
  signal: AbortSignal,
): Promise<Runtime> {
  const lease = Number(leaseMs) || LEASE_MAX_MS;
  const runtime = await ctx.runtimes.acquire(
    {
      spec: spec && ctx.specs.of(spec),
      owner: { sessionId: ref.sessionId, attempt: ref.attempt, purpose: 'run' },
      ref,
      timeoutMs: Number(timeoutMs) || PREPARE_DEFAULT_MS,
      leaseMs: Math.min(Math.max(lease, LEASE_MIN_MS), LEASE_MAX_MS),
      forEvaluation: false,
    },
    signal,
  );
  if (evaluateTimeoutMs > 0n) ctx.ahead.wish(runtime, Number(evaluateTimeoutMs));
  return runtime;
}

async function publishFailed(
  ctx: RuntimePrewarmContext,
  ref: AttemptRef,
  error: PolarError,
  durationMs: number,
  signal: AbortSignal,
): Promise<void> {
  events.prepareFailed(ctx.log, ref, error);
  const value = { failure: failureOf(error), stage: 'prepare' };
  await publish(ctx, { ref, durationMs, kind: { case: 'failed', value }, signal });
}

const publish = ({ bus, blobs }: RuntimePrewarmContext, fact: FactOptions): Promise<void> =>
  publishFact(bus, blobs, fact);
