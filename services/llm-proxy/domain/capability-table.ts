// Which capability opens which attempt. Fed by the entries of bucket polar_capabilities in the order of their revisions.
import { timingSafeEqual } from 'node:crypto';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';

interface Entry {
  readonly capability: Capability;
  readonly revision: number;
}

export class CapabilityTable {
  readonly #byKey = new Map<string, Entry>();
  readonly #keyOfDigest = new Map<string, string>();
  #revision = 0;

  /** Revision of the newest entry taken in. */
  get revision(): number {
    return this.#revision;
  }

  get capabilities(): Capability[] {
    return [...this.#byKey.values()].map(({ capability }) => capability);
  }

  /** Revision of the entry under a key; 0 where there is none. */
  revisionOf(key: string): number {
    return this.#byKey.get(key)?.revision ?? 0;
  }

  /** Take an entry in; no capability: it was deleted. Returns what is thereby revoked. Older entries change nothing. */
  apply(key: string, revision: number, capability: Capability | undefined): Capability | undefined {
    if (revision <= this.#revision) return undefined;
    this.#revision = revision;
    const before = this.#byKey.get(key)?.capability;
    if (before !== undefined) this.#keyOfDigest.delete(before.digest);
    this.#byKey.delete(key);
    if (capability !== undefined) {
      this.#byKey.set(key, { capability, revision });
      this.#keyOfDigest.set(capability.digest, key);
    }
    return before?.digest === capability?.digest ? undefined : before;
  }

  /** The capability with this digest, unless it has expired. */
  find(digest: string, nowMs: number): Capability | undefined {
    const found = this.#byKey.get(this.#keyOfDigest.get(digest) ?? '')?.capability;
    if (found === undefined || !equal(found.digest, digest)) return undefined;
    return isExpired(found, nowMs) ? undefined : found;
  }

  /** Whether one that was found is still valid; it may have been put again since, for longer. */
  holds({ digest }: Capability, nowMs: number): boolean {
    const known = this.#byKey.get(this.#keyOfDigest.get(digest) ?? '')?.capability;
    return known !== undefined && !isExpired(known, nowMs);
  }

  /** Remove what has expired, and return it. */
  expire(nowMs: number): Capability[] {
    const gone: Capability[] = [];
    for (const [key, { capability }] of this.#byKey) {
      if (!isExpired(capability, nowMs)) continue;
      this.#byKey.delete(key);
      this.#keyOfDigest.delete(capability.digest);
      gone.push(capability);
    }
    return gone;
  }
}

const isExpired = ({ expireMs }: Capability, nowMs: number): boolean => Number(expireMs) <= nowMs;

/** In constant time for one length. */
const equal = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
