// What a commit says, be it of the log or a part of a snapshot.
import { type Change, CommitSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../../common/errors.ts';
import { fromStored } from '../../common/stored.ts';

/** Throws STATE_INVALID, which names `what`: to read it again would not help. */
export function changesIn(bytes: Uint8Array, what: string): Change[] {
  try {
    return fromStored(CommitSchema, bytes).changes;
  } catch (cause) {
    throw new PolarError('STATE_INVALID', `${what} cannot be read: ${(cause as Error).message}`, { cause });
  }
}
