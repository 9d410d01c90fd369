// Facts of all services: committed, then acknowledged. What does not fit the committed state is dropped.
import { fromBinary } from '@bufbuild/protobuf';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { type Fact, FactSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure, PolarError } from '../../common/errors.ts';
import { FACTS_AT_ONCE_MAX } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { consume } from '../../common/nats/consume.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import type { SchedulerContext } from '../context.ts';
import type { Found } from '../dispatch/board.ts';
import { unixMs } from '../dispatch/clock.ts';
import { applyFact } from '../domain/facts.ts';
import { attemptLost, SESSION_BYTES_MAX, sessionBytes } from '../domain/session.ts';
import * as events from '../events.ts';

/** Of a fact: several that are smaller make no record that is too large. */
const LARGE_FACT_BYTES = 32 * 1024;

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
    handle: ({ bytes }) => handleFact(ctx, decode(bytes), bytes.byteLength > LARGE_FACT_BYTES),
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

async function handleFact(
  { board, lease, log, signal }: SchedulerContext,
  fact: Fact,
  isLarge: boolean,
): Promise<void> {
  const found = board.find(fact.ref?.sessionId ?? '');
  const next = found && applyFact(found.record, found.task.spec, fact, unixMs());
  if (found !== undefined && next !== undefined) {
    return await board.change(found, isLarge ? withinLog(found, next) : next);
  }
  // It may be the same fact again, whose commit is still on its way: not acknowledged before that is through.
  await board.journal.settled();
  // What does not fit the state of one that does not lead any more may fit that of the one that does.
  await lease.confirmed(signal);
  events.factStale(log, fact);
}

/** The next record or, where it fits no message, the loss of the attempt: the log would try to store it for ever. */
function withinLog({ record, task: { spec } }: Found, next: SessionRecord): SessionRecord {
  const bytes = sessionBytes(next);
  if (bytes <= SESSION_BYTES_MAX) return next;
  const message = `its record would take ${bytes} bytes in the log, at most SESSION_BYTES_MAX (${SESSION_BYTES_MAX})`;
  return attemptLost(record, failure('INTERNAL', message), spec.maxAttempts, unixMs());
}

function decode(bytes: Uint8Array): Fact {
  try {
    return fromBinary(FactSchema, bytes);
  } catch (cause) {
    throw new PolarError('INVALID_REQUEST', 'a fact that is none', { cause });
  }
}
