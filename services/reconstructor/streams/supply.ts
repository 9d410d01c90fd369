// What the streams of a consumer are to send next, fetched once for all of them in this process: each of them may be the
// one that sends it, and the others would have fetched it for nothing.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Layout } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { placeOf, setBack } from '../cursors/lost-end.ts';
import { againIds } from '../domain/admission.ts';
import { acked } from '../domain/cursor.ts';
import { batchRemoved } from '../events.ts';
import { Again } from './again.ts';
import { openAhead } from './ahead.ts';
import type { Resolved, Room } from './batches.ts';
import { type Persist, persistently } from './persistently.ts';
import { present, type StreamParts, type StreamRequest } from './stream-parts.ts';

export interface Supply {
  /** What comes next, as far as it is there; what comes behind it is being fetched. */
  ready(cursor: Cursor): Resolved[];
  /** Whether more of what comes next is being fetched. */
  readonly isComing: () => boolean;
  /** These are the caller's alone, and let go: their memory may end. */
  take(batches: readonly Resolved[]): void;
}

type Place = Pick<StreamRequest, 'consumer' | 'taskId' | 'layout'>;

interface Shared {
  readonly supply: Supply;
  readonly stop: AbortController;
  streams: number;
}

export class Supplies {
  readonly #parts: StreamParts;
  readonly #open = new Map<string, Shared>();

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  /** For one more stream of the consumer; when the last one disposes of it, all is let go. */
  join(place: Place): Supply & Disposable {
    // A consumer that was deleted may come again with another task.
    const key = `${place.consumer} ${place.layout} ${place.taskId}`;
    const shared = this.#open.get(key) ?? this.#start(place);
    this.#open.set(key, shared);
    shared.streams++;
    return {
      ...shared.supply,
      [Symbol.dispose]: () => {
        shared.streams--;
        if (shared.streams > 0) return;
        this.#open.delete(key);
        shared.stop.abort();
      },
    };
  }

  #start(place: Place): Shared {
    const stop = new AbortController();
    return { supply: supplyOf(this.#parts, place, stop.signal), stop, streams: 0 };
  }
}

/** Ends with the signal. */
function supplyOf(parts: StreamParts, place: Place, signal: AbortSignal): Supply {
  const { consumer, layout } = place;
  const persist = persistently(parts.log, signal);
  // A stream without credit does not ask: what is fetched meanwhile wakes nobody.
  let isAwaited = false;
  const wake = (): void => {
    if (isAwaited) parts.cursors.changed(consumer).wake();
    isAwaited = false;
  };
  const goBack = (): Promise<void> => persist(() => setBack(parts, consumer, signal));
  const ahead = openAhead(parts, place, signal, { persist, wake, goBack });
  const fetch = (batchId: number, room: Room): Promise<Resolved | undefined> =>
    sentBefore({ parts, consumer, layout, signal, persist }, batchId, room);
  const again = new Again(fetch, signal, wake);
  return {
    ready(cursor) {
      isAwaited = true;
      const ids = againIds(cursor, Date.now());
      const before = again.ready(ids.map(Number));
      return ids.length > 0 ? before : ahead.ready(placeOf(cursor));
    },
    isComing: () => ahead.isComing,
    take(batches) {
      for (const one of batches) one.isTaken = true;
      const batchIds = new Set(batches.map(({ batchId }) => batchId));
      for (const from of [again, ahead]) from.take(batchIds);
    },
  };
}

interface Search {
  readonly parts: StreamParts;
  readonly consumer: string;
  readonly layout: Layout;
  readonly signal: AbortSignal;
  readonly persist: Persist;
}

/** A batch that is to be sent again; undefined where it was removed from the stream, and is forgotten. */
async function sentBefore(search: Search, batchId: number, room: Room): Promise<Resolved | undefined> {
  const { parts, layout, signal, persist } = search;
  const stored = await persist(() => parts.trajectories.at(batchId, signal));
  if (stored !== undefined) return await persist(() => parts.batches.resolve(stored, layout, signal, room));
  await persist(() => forget(search, BigInt(batchId)));
  return undefined;
}

/** An operator removed it from the stream: it can neither be sent nor acknowledged. */
async function forget({ parts, consumer, signal }: Search, batchId: bigint): Promise<void> {
  const change = (cursor: Cursor | undefined): Cursor => acked(present(cursor, consumer), [batchId]);
  await parts.cursors.update(consumer, change, signal);
  batchRemoved(parts.log, consumer, Number(batchId));
}
