// Which capability opens which attempt. Fed by the entries of bucket polar_capabilities in the order of their revisions.
import { timingSafeEqual } from 'node:crypto';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';

interface Entry {
  readonly capability: Capability;
  readonly revision: number;
  readonly endMs: number;
}

export class CapabilityTable {
  readonly #byKey = new Map<string, Entry>();
  readonly #keyOfDigest = new Map<string, string>();
  readonly #endOf: (capability: Capability) => number;
  #revision = 0;

  /** `endOf`: when one that comes now expires, by the clock of what is asked later. */
  constructor(endOf: (capability: Capability) => number = ({ expireMs }) => Number(expireMs)) {
    this.#endOf = endOf;
  }

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
      this.#byKey.set(key, { capability, revision, endMs: this.#endOf(capability) });
      this.#keyOfDigest.set(capability.digest, key);
    }
    return before?.digest === capability?.digest ? undefined : before;
  }

  /** The capability with this digest, unless it has expired. */
  find(digest: string, nowMs: number): Capability | undefined {
    const found = this.#byKey.get(this.#keyOfDigest.get(digest) ?? '');
    if (found === undefined || !equal(found.capability.digest, digest)) return undefined;
    return found.endMs <= nowMs ? undefined : found.capability;
  }

  /** Whether one that was found is still valid; it may have been put again since, for longer. */
  holds({ digest }: Capability, nowMs: number): boolean {
    const known = this.#byKey.get(this.#keyOfDigest.get(digest) ?? '');
    return known !== undefined && known.endMs > nowMs;
  }

  /** Remove what has expired, and return it. */
  expire(nowMs: number): Capability[] {
    const gone: Capability[] = [];
    for (const [key, { capability, endMs }] of this.#byKey) {
      if (endMs > nowMs) continue;
      this.#byKey.delete(key);
      this.#keyOfDigest.delete(capability.digest);
      gone.push(capability);
    }
    return gone;
  }
}

/** In constant time for one length. */
const equal = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
