// Goes through what a stream holds, in order and without a gap: for those who conclude something from what is not there.
import { DeliverPolicy, type JsMsg, nanos, type StoredMsg } from 'nats';
import { PolarError } from '../errors.ts';
import { newId } from '../ids.ts';
import { RECORDS_FETCH_MAX, RECORDS_FETCH_MS } from '../limits.ts';
import type { Bus } from './bus.ts';
import { withRetry } from './publish.ts';
import { temporaryConsumer } from './temporary-consumer.ts';

/** Messages asked for at once without their bodies; RECORDS_FETCH_MAX with them. */
const HEADERS_AT_ONCE = 1_000;
/** Messages that a walk reads above twice what the stream held at first. */
const MORE_MAX = 5_000;
/** What a consumer outlives its walker by. */
const CONSUMER_MS = 60_000;

export interface Walk {
  readonly stream: string;
  /** Default: all of them. */
  readonly filter?: string;
  /** First sequence; default 1. */
  readonly from?: number;
  /** Without bodies. */
  readonly headersOnly?: boolean;
}

/**
 * What the stream holds, up to where nothing is behind the last message: one that is stored again meanwhile moves there.
 * Throws NATS_UNAVAILABLE where a message did not come, or where there is no end of new ones. Not of a work queue.
 */
export async function* walk(bus: Bus, what: Walk, signal: AbortSignal): AsyncGenerator<JsMsg, void> {
  const { stream, filter, from = 1, headersOnly = false } = what;
  const name = newId('walk');
  const config = {
    ...{ name, headers_only: headersOnly },
    ...{ deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: from },
    ...(filter !== undefined && { filter_subject: filter }),
    inactive_threshold: nanos(CONSUMER_MS),
  };
  try {
    const { info, consumer } = await temporaryConsumer(bus, stream, config, signal);
    const atOnce = headersOnly ? HEADERS_AT_ONCE : RECORDS_FETCH_MAX;
    const most = 2 * info.num_pending + MORE_MAX;
    for (let left = info.num_pending, seen = 0; left > 0; ) {
      signal.throwIfAborted();
      // All of them before one is looked at: that may take longer than a fetch.
      const batch: JsMsg[] = [];
      for await (const message of await consumer.fetch({ max_messages: atOnce, expires: RECORDS_FETCH_MS })) {
        if (message.info.deliverySequence !== ++seen) throw lost(stream);
        batch.push(message);
        left = message.info.pending;
        if (left === 0) break;
      }
      yield* batch;
      if (left > 0 && seen > most)
        throw new PolarError('NATS_UNAVAILABLE', `${stream} grows faster than it is read`);
      if (batch.length > 0) continue;
      // The rest may have been removed meanwhile; or it was sent, and lost on its way.
      const { num_pending, delivered } = await withRetry(`look at ${stream}`, signal, () => consumer.info());
      if (num_pending === 0 && delivered.consumer_seq === seen) return;
      throw lost(stream);
    }
  } finally {
    await bus.jsm.consumers.delete(stream, name).catch(() => {});
  }
}

/** The same of a work queue, whose messages no second consumer can read: one by one, from its leader. */
export async function* walkQueue(
  bus: Bus,
  stream: string,
  signal: AbortSignal,
): AsyncGenerator<StoredMsg, void> {
  const { state } = await withRetry(`look at ${stream}`, signal, () => bus.jsm.streams.info(stream));
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const query = { seq, next_by_subj: '>' };
    const message = await withRetry(`look at ${stream}`, signal, () =>
      bus.jsm.streams.getMessage(stream, query).catch(orNone),
    );
    if (message === undefined) return;
    yield message;
    seq = message.seq;
  }
}

const lost = (stream: string): PolarError =>
  new PolarError('NATS_UNAVAILABLE', `messages of ${stream} did not come`);

function orNone(error: Error): undefined {
  if (!/no message|message not found|404/i.test(error.message)) throw error;
}
