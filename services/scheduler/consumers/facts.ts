// Facts of all services: committed, then acknowledged. What does not fit the committed state is dropped.
import { fromBinary } from '@bufbuild/protobuf';
import { type Fact, FactSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import { FACTS_AT_ONCE_MAX } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { consume } from '../../common/nats/consume.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import type { SchedulerContext } from '../context.ts';
import { unixMs } from '../dispatch/clock.ts';
import { applyFact } from '../domain/facts.ts';
import * as events from '../events.ts';

/** Until the context's signal aborts; that comes before any fact fails because the log is closed, so none is dropped. */
export async function consumeFacts(ctx: SchedulerContext): Promise<void> {
  const { bus, blobs, log, signal } = ctx;
  await takeBack(bus);
  await consume({
    bus,
    blobs,
    log,
    signal,
    stream: STREAMS.facts.name,
    consumer: CONSUMERS.schedulerFacts,
    concurrency: FACTS_AT_ONCE_MAX,
    handle: ({ bytes }) => handleFact(ctx, decode(bytes)),
  });
}

/**
 * Facts that an earlier scheduler took and did not acknowledge come at once to a new consumer, not after their ack wait.
 * The work-queue stream holds them; if the old consumer cannot be deleted, it is used on.
 */
async function takeBack({ jsm }: Bus): Promise<void> {
  const durable = CONSUMERS.schedulerFacts.durable_name ?? '';
  await jsm.consumers.delete(STREAMS.facts.name, durable).catch(() => {});
}

async function handleFact({ board, lease, log, signal }: SchedulerContext, fact: Fact): Promise<void> {
  const found = board.find(fact.ref?.sessionId ?? '');
  const next = found && applyFact(found.record, found.task.spec, fact, unixMs());
  if (found !== undefined && next !== undefined) return await board.change(found, next);
  // It may be the same fact again, whose commit is still on its way: not acknowledged before that is through.
  await board.journal.settled();
  // What does not fit the state of one that does not lead any more may fit that of the one that does.
  await lease.confirmed(signal);
  events.factStale(log, fact);
}

function decode(bytes: Uint8Array): Fact {
  try {
    return fromBinary(FactSchema, bytes);
  } catch (cause) {
    throw new PolarError('INVALID_REQUEST', 'a fact that is none', { cause });
  }
}
