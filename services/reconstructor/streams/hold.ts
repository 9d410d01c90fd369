// Keeps an open stream's place in its cursor, and sees when it has none any more.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { asPolarError } from '../../common/errors.ts';
import { STREAM_POLL_MS, STREAM_PROGRESS_MS, STREAM_READ_MS } from '../../common/limits.ts';
import { Bystanders } from '../domain/bystanders.ts';
import { closed, memberOf, type StreamRef, seen } from '../domain/members.ts';
import { streamsLost } from '../events.ts';
import { present, type StreamParts } from './stream-parts.ts';

/** What ends a stream; an absent NATS does not. */
const ENDS = new Set<string>(['NOT_FOUND', 'STREAM_REPLACED', 'STREAM_LAPSED']);

/** Looks every STREAM_POLL_MS and writes every STREAM_PROGRESS_MS that the stream is open, until `end` aborts. */
export async function hold(
  parts: StreamParts,
  consumer: string,
  stream: StreamRef,
  end: AbortController,
): Promise<void> {
  const { cursors, log } = parts;
  const { signal } = end;
  const others = new Bystanders();
  let seenAt = performance.now();
  for (;;) {
    await sleep(STREAM_POLL_MS, signal);
    if (signal.aborted) return;
    try {
      const askedAt = performance.now();
      const known = await cursors.get(consumer, signal);
      if (performance.now() - askedAt > STREAM_READ_MS) others.forget();
      const cursor = present(known, consumer);
      memberOf(cursor, stream);
      const beside = cursor.members.filter(({ streamId }) => streamId !== stream.streamId);
      const lost = others.lost(beside, performance.now());
      if (lost.length === 0 && performance.now() - seenAt < STREAM_PROGRESS_MS) continue;
      const stay = (now: Cursor | undefined): Cursor =>
        closed(seen(present(now, consumer), stream, Date.now()), ...lost);
      await cursors.update(consumer, stay, signal);
      seenAt = performance.now();
      if (lost.length > 0) streamsLost(log, consumer, lost.length);
    } catch (error) {
      others.forget();
      if (ENDS.has(asPolarError(error).reason)) return end.abort(error);
    }
  }
}
