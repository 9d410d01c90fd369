// What a commit says, be it of the log or a part of a snapshot.
import { type Change, type Commit, CommitSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../../common/errors.ts';
import { fromStored } from '../../common/stored.ts';

/**
 * Throws STATE_INVALID, which names `what`: to read it again would not help. A change of an unknown kind is of a newer
 * version: passed over, it would be gone for good with the next snapshot. One of no kind says nothing.
 */
export function changesIn(bytes: Uint8Array, what: string): Change[] {
  const { changes } = commitIn(bytes, what);
  if (changes.some(({ kind, $unknown }) => kind.case === undefined && $unknown !== undefined)) {
    const message = `${what} holds a change that this version does not know: start a scheduler of the version that wrote it, or of a newer one`;
    throw new PolarError('STATE_INVALID', message);
  }
  return changes;
}

function commitIn(bytes: Uint8Array, what: string): Commit {
  try {
    return fromStored(CommitSchema, bytes);
  } catch (cause) {
    throw new PolarError('STATE_INVALID', `${what} cannot be read: ${(cause as Error).message}`, { cause });
  }
}
