// `close` work of this node: runs that were elsewhere come to their end at its LLM proxy. Each becomes one fact, `ran` or
// `failed`. Unlike a run it can be done again: what a stopping executor leaves is the next one's.
import type { CloseWork } from '../../../gen/ts/polar/event/v1/external_session_pb.js';
import { type AttemptRef, WorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failureOf, PolarError } from '../../common/errors.ts';
import { deleteCapability } from '../../common/nats/capabilities.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { attemptOf } from '../../common/nats/facts.ts';
import { withRetry } from '../../common/nats/publish.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import { fromStored } from '../../common/stored.ts';
import type { HarnessExecutorContext } from '../context.ts';
import * as events from '../events.ts';
import { keyOf } from '../runs/capability.ts';
import { endElsewhere } from '../runs/end-elsewhere.ts';
import { tellEnd } from '../runs/tell-end.ts';

/** Others wait. */
const CLOSES_AT_ONCE_MAX = 16;
/** Nobody can run it again: what can be otherwise a moment later is waited for. Of 20 s each where the LLM proxy is away. */
const TRIES_MAX = 25;

/** Pull until the signal aborts; resolves when what was begun has ended. */
export async function consumeCloseWork(ctx: HarnessExecutorContext, signal: AbortSignal): Promise<void> {
  const { bus, blobs, log, runs } = ctx;
  await consume({
    bus,
    blobs,
    log,
    signal,
    stream: STREAMS.work.name,
    consumer: CONSUMERS.work('close', ctx.config.node.id, CLOSES_AT_ONCE_MAX / 2),
    concurrency: CLOSES_AT_ONCE_MAX,
    deliveriesMax: TRIES_MAX,
    handle: async (delivery) => {
      const { ref, work } = closeOf(delivery);
      await runs.run(keyOf(ref), () => closeAndTell(ctx, ref, work, signal));
    },
    onDead: async ({ bytes }, error) => {
      const ref = attemptOf(bytes);
      if (ref === undefined) return;
      await runs.run(keyOf(ref), () => tellEnd(ctx, ref, { failed: failureOf(error) }, 0, signal));
    },
  });
}

function closeOf({ bytes }: Delivery): { ref: AttemptRef; work: CloseWork } {
  const { ref, kind } = fromStored(WorkSchema, bytes);
  if (ref === undefined || kind.case !== 'close')
    throw new PolarError('INVALID_REQUEST', 'this is no close work');
  return { ref, work: kind.value };
}

async function closeAndTell(
  ctx: HarnessExecutorContext,
  ref: AttemptRef,
  work: CloseWork,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  const end = await endElsewhere(ctx, ref, work, signal);
  // Before the end is told: the scheduler ends the credentials only of runs that did not end so.
  await withRetry('delete capability', signal, () => deleteCapability(ctx.bus, ref));
  await tellEnd(ctx, ref, end, performance.now() - startedAt, signal);
  events.closed(ctx.log, ref, 'failed' in end ? end.failed.reason : '');
}
