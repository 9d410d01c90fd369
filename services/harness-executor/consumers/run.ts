// `run` work of this node: each becomes one fact, `ran` or `failed`.
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { type AttemptRef, WorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { Semaphore } from '../../common/clock.ts';
import { failureOf, PolarError } from '../../common/errors.ts';
import { STOP_GRACE_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { attemptOf } from '../../common/nats/facts.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import { fromStored } from '../../common/stored.ts';
import type { HarnessExecutorContext } from '../context.ts';
import * as events from '../events.ts';
import { keyOf, revokeCapability } from '../runs/capability.ts';
import type { Run } from '../runs/run.ts';
import { type RunEnd, runHarness } from '../runs/run-harness.ts';
import { tellEnd } from '../runs/tell-end.ts';
import { untilStored } from '../runs/until-stored.ts';

/** Pull until the signal aborts; resolves when the runs have ended. */
export async function consumeRunWork(ctx: HarnessExecutorContext, signal: AbortSignal): Promise<void> {
  const { bus, blobs, log, runs } = ctx;
  const slots = new Semaphore(ctx.config.node.max_run_workers);
  const consumer = CONSUMERS.work('run', ctx.config.node.id, ctx.config.node.max_run_workers);
  await consume({
    bus,
    blobs,
    log,
    signal,
    stream: STREAMS.work.name,
    consumer,
    // All that can be delivered is held, so that what waits for a slot here is not delivered again.
    concurrency: consumer.max_ack_pending ?? ctx.config.node.max_run_workers,
    handle: async (delivery) => {
      const run = runOf(delivery);
      if (run.again) events.runRedelivered(log, run.ref);
      await runs.run(keyOf(run.ref), () => slots.run(() => runAndTell(ctx, run, signal)));
    },
    onDead: async ({ bytes }, error) => {
      const ref = attemptOf(bytes);
      if (ref === undefined) return;
      const failed = failureOf(error);
      // Not of a run that is told, or will be.
      await runs.run(keyOf(ref), () => {
        events.runFailed(log, ref, failed.reason, failed.message);
        return tellEnd(ctx, ref, { failed }, 0, signal);
      });
    },
  });
}

function runOf({ bytes, again }: Delivery): Run {
  const { ref, kind } = fromStored(WorkSchema, bytes);
  if (ref === undefined || kind.case !== 'run')
    throw new PolarError('INVALID_REQUEST', 'this is no run work');
  return { ref, work: kind.value, again };
}

async function runAndTell(ctx: HarnessExecutorContext, run: Run, signal: AbortSignal): Promise<void> {
  // Not begun: the next executor takes it.
  signal.throwIfAborted();
  const startedAt = performance.now();
  const end: RunEnd = await runHarness(ctx, run, signal).catch((error) => ({ failed: failureOf(error) }));
  // A stopping executor still says how its runs ended, so that nobody has to wait for it.
  const saying = signal.aborted ? AbortSignal.timeout(STOP_GRACE_MS) : signal;
  // Goes out before the fact, in one write with it: the scheduler ends the credentials only of runs that did not end so.
  const revoked = untilStored(
    () => revokeCapability(ctx.bus, run, saying),
    (error) => events.capabilityNotRevokedYet(ctx.log, run.ref, error),
    saying,
  ).catch((error) => events.capabilityNotRevoked(ctx.log, run.ref, error));
  const durationMs = performance.now() - startedAt - (end.installMs ?? 0);
  logEnd(ctx.log, run.ref, end, Math.round(durationMs));
  await tellEnd(ctx, run.ref, end, durationMs, saying);
  await revoked;
}

function logEnd(log: Logger, ref: AttemptRef, end: RunEnd, duration_ms: number): void {
  if ('failed' in end) {
    events.runFailed(log, ref, end.failed.reason, end.failed.message);
    return;
  }
  const { outcome, exitCode, calls } = end.ran;
  const told = { outcome: Outcome[outcome], exit_code: exitCode, calls: calls?.calls ?? 0, duration_ms };
  events.runEnded(log, ref, told);
}
