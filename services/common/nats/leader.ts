// Which scheduler leads: its lease is one key of a bucket.
import { fromBinary } from '@bufbuild/protobuf';
import type { KvEntry } from 'nats';
import { type LeaseRecord, LeaseRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';

/** In the bucket `lease`. */
export const LEASE_KEY = 'scheduler';

/** The holder that the bucket's entry names; undefined where nobody has the lease. */
export function leaderIn(entry: KvEntry | null): LeaseRecord | undefined {
  return entry?.operation === 'PUT' ? fromBinary(LeaseRecordSchema, entry.value) : undefined;
}
