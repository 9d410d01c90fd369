// Removing what is stored of sessions. Each removal may be made again.
import { DeliverPolicy, nanos } from 'nats';
import { newId } from '../../common/ids.ts';
import { RECORDS_FETCH_MAX, RECORDS_FETCH_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { claimOf, withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { packSubjectOf, subjects } from '../../common/nats/subjects.ts';
import { temporaryConsumer } from '../../common/nats/temporary-consumer.ts';

export interface Store {
  /** With its pack; `subject` is that of its message. */
  removeGroup(batchId: number, subject: string, signal: AbortSignal): Promise<void>;
  removeBlob(sha256: string, signal: AbortSignal): Promise<void>;
  /** The completion records of an attempt, with the blobs that hold the large ones. */
  removeRecords(sessionId: string, attempt: number, signal: AbortSignal): Promise<void>;
}

export function createStore(bus: Bus): Store {
  const purge = async (stream: string, filter: string, signal: AbortSignal): Promise<void> => {
    await withRetry('remove', signal, () => bus.jsm.streams.purge(stream, { filter }));
  };
  const removeBlob = (sha256: string, signal: AbortSignal): Promise<void> =>
    purge(STREAMS.blobs.name, subjects.blobParts(sha256), signal);
  return {
    removeBlob,
    async removeGroup(batchId, subject, signal) {
      await purge(STREAMS.packs.name, packSubjectOf(subject), signal);
      await withRetry('remove', signal, () =>
        bus.jsm.streams.deleteMessage(STREAMS.trajectories.name, batchId, false).catch(orGone),
      );
    },
    async removeRecords(sessionId, attempt, signal) {
      const subject = subjects.completion(sessionId, attempt);
      for (const sha256 of await claimsIn(bus, subject, signal)) await removeBlob(sha256, signal);
      await purge(STREAMS.completions.name, subject, signal);
    },
  };
}

/** Digests of the blobs that stand for messages. */
async function claimsIn(bus: Bus, subject: string, signal: AbortSignal): Promise<string[]> {
  const stream = STREAMS.completions.name;
  const name = newId('sweep');
  const config = {
    ...{ name, filter_subject: subject, headers_only: true, deliver_policy: DeliverPolicy.All },
    inactive_threshold: nanos(RECORDS_FETCH_MS * 4),
  };
  const found: string[] = [];
  try {
    const { info, consumer } = await temporaryConsumer(bus, stream, config, signal);
    for (let left = info.num_pending, came = 1; left > 0 && came > 0; ) {
      signal.throwIfAborted();
      came = 0;
      const batch = { max_messages: Math.min(left, RECORDS_FETCH_MAX), expires: RECORDS_FETCH_MS };
      for await (const message of await consumer.fetch(batch)) {
        came++;
        const sha256 = claimOf(message.headers);
        if (sha256 !== undefined) found.push(sha256);
      }
      left -= came;
    }
    return found;
  } finally {
    await bus.jsm.consumers.delete(stream, name).catch(() => {});
  }
}

function orGone(error: Error): boolean {
  if (/no message|message not found|404/i.test(error.message)) return false;
  throw error;
}
