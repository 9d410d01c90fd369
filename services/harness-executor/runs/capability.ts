// The session's credential at the proxy, and the mark that an attempt's run has begun.
import { create } from '@bufbuild/protobuf';
import {
  type AttemptRef,
  type Capability,
  CapabilitySchema,
  type RunWork,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import { newSecret, sha256 } from '../../common/ids.ts';
import { LEASE_MAX_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { deleteCapability, storeCapability } from '../../common/nats/capabilities.ts';
import { withRetry } from '../../common/nats/publish.ts';
import type { Run } from './run.ts';

export const keyOf = ({ sessionId, attempt }: AttemptRef): string => `${sessionId}.${attempt}`;

/**
 * Store the digest of a new credential, durable when it returns. Whatever lies under the key of an attempt, a deletion
 * too, says that its run began before: then EXECUTOR_LOST, as a second run would not start from the same sandbox.
 */
export async function grantCapability(
  bus: Bus,
  ref: AttemptRef,
  work: RunWork,
  signal: AbortSignal,
): Promise<string> {
  const secret = newSecret();
  const capability = capabilityOf(ref, work, sha256(secret));
  const isFirst = await storeCapability(bus, ref, capability, validMs(work), signal);
  if (!isFirst)
    throw new PolarError('EXECUTOR_LOST', 'an earlier harness executor began this run and is gone');
  return secret;
}

/** With room for pauses, in which the run's clock stops, and for nights that the machine sleeps: it goes by the time of day. */
const validMs = ({ timeoutMs }: RunWork): number => Number(timeoutMs) + LEASE_MAX_MS;

function capabilityOf(ref: AttemptRef, work: RunWork, digest: string): Capability {
  return create(CapabilitySchema, {
    ref,
    digest,
    // It is deleted when the run ends.
    expireMs: BigInt(Date.now() + validMs(work)),
    modelName: work.harness?.modelName ?? '',
    modelPools: work.harness?.modelPools ?? [],
    ...(work.sampling && { sampling: work.sampling }),
  });
}

/** The credential opens nothing any more. */
export async function revokeCapability(bus: Bus, { ref, work }: Run, signal: AbortSignal): Promise<void> {
  const knownMs = validMs(work);
  await withRetry('delete capability', signal, () => deleteCapability(bus, ref, knownMs));
}
