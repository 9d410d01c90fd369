// The current policy version, as this process last heard of it.
import type { Bus } from '../../common/nats/bus.ts';
import { PolicyWatch } from '../../common/nats/policy.ts';
import { Wakeup } from './wakeup.ts';

export interface PolicyVersion {
  /** 0 until one is published. */
  readonly current: bigint;
  /** Wakes when it changes. */
  readonly changed: Wakeup;
}

/** Follows the policy document until the signal aborts. Throws NATS_UNAVAILABLE. */
export async function openPolicyVersion(bus: Bus, signal: AbortSignal): Promise<PolicyVersion> {
  const changed = new Wakeup();
  const watch = await PolicyWatch.open({ bus, signal });
  let last = watch.policy.policyVersion;
  watch.onChange(() => {
    const { policyVersion } = watch.policy;
    if (policyVersion === last) return;
    last = policyVersion;
    changed.wake();
  });
  return {
    get current() {
      return watch.policy.policyVersion;
    },
    changed,
  };
}
