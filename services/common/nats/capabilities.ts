// Credentials of attempts in bucket polar_capabilities: written once for each, deleted once; what opens the LLM proxy.
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type AttemptRef,
  type Capability,
  CapabilitySchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { EXEC_TIMEOUT_MAX_MS, LEASE_MAX_MS } from '../limits.ts';
import type { Bus } from './bus.ts';
import { cameSecond, deleteKey, endingAfter, HEADER_BEHIND, withRetry } from './publish.ts';
import { subjectOfKey } from './streams.ts';

/** Longer than any credential is valid: a run's longest budget, and LEASE_MAX_MS. */
const VALID_MAX_MS = EXEC_TIMEOUT_MAX_MS + LEASE_MAX_MS;

type Attempt = Pick<AttemptRef, 'sessionId' | 'attempt'>;

const keyOf = ({ sessionId, attempt }: Attempt): string => `${sessionId}.${attempt}`;

/**
 * Store it under its attempt, durable when it returns. False where something else lies there, or did: also the mark of a
 * deletion, so that one that is over is not valid again.
 */
export async function storeCapability(
  bus: Bus,
  ref: Attempt,
  capability: Capability,
  validMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const bucket = await bus.kv('capabilities');
  const key = keyOf(ref);
  const value = toBinary(CapabilitySchema, capability);
  const fields = { [HEADER_BEHIND]: '0', ...endingAfter(validMs) };
  return await withRetry('write capability', signal, async () => {
    try {
      await bus.acks.store(subjectOfKey('capabilities', key), value, fields);
      return true;
    } catch (error) {
      if (!cameSecond(error)) throw error;
      // An earlier try may have been stored and its answer lost.
      const found = await bucket.get(key);
      return (
        found?.operation === 'PUT' && fromBinary(CapabilitySchema, found.value).digest === capability.digest
      );
    }
  });
}

/** It opens nothing any more. Tried once: to be repeated by who needs it. `knownMs`: it was valid for no longer. */
export async function deleteCapability(bus: Bus, ref: Attempt, knownMs = VALID_MAX_MS): Promise<void> {
  await bus.kv('capabilities');
  await deleteKey(bus, 'capabilities', keyOf(ref), knownMs);
}
