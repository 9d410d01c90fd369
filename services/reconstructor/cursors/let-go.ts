// Batches that were given back for a while: the process that was asked lets them go when that is over by its steady clock. The
// time in the cursor is by its wall clock, which may be set, and others may read it by one that is behind; it holds where this
// process is gone by then.
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import { type Nack, released, waitsUntil } from '../domain/cursor.ts';
import type { StreamParts } from '../streams/stream-parts.ts';
import { changeCursor } from './named-consumer.ts';

/** Where clocks are alike, the batch has come again by then. */
const SLACK_MS = 500;

/** At most one timer for each batch that waits, which are limited. */
export function letGoLater(parts: Pick<StreamParts, 'cursors'>, consumer: string, nack: Nack): void {
  const known = parts.cursors.known(consumer);
  if (nack.delayMs === 0 || known === undefined || !waitsUntil(known, nack)) return;
  const letGo = (): void => {
    const signal = AbortSignal.timeout(RPC_TIMEOUT_MS);
    // Where it cannot be written, the time in the cursor holds.
    changeCursor(parts, consumer, (cursor) => released(cursor, nack), signal).catch(() => {});
  };
  setTimeout(letGo, nack.delayMs + SLACK_MS).unref();
}
