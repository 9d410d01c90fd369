// Which capability opens which attempt. Fed by the entries of bucket polar_capabilities in the order of their revisions.
import { timingSafeEqual } from 'node:crypto';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';

export class CapabilityTable {
  readonly #byKey = new Map<string, Capability>();
  readonly #keyOfDigest = new Map<string, string>();
  #revision = 0;

  /** Revision of the newest entry taken in. */
  get revision(): number {
    return this.#revision;
  }

  get capabilities(): Iterable<Capability> {
    return this.#byKey.values();
  }

  /** Take an entry in; no capability: it was deleted. Returns what is thereby revoked. Older entries change nothing. */
  apply(key: string, revision: number, capability: Capability | undefined): Capability | undefined {
    if (revision <= this.#revision) return undefined;
    this.#revision = revision;
    const before = this.#byKey.get(key);
    if (before !== undefined) this.#keyOfDigest.delete(before.digest);
    this.#byKey.delete(key);
    if (capability !== undefined) {
      this.#byKey.set(key, capability);
      this.#keyOfDigest.set(capability.digest, key);
    }
    return before?.digest === capability?.digest ? undefined : before;
  }

  /** The capability with this digest, unless it has expired. */
  find(digest: string, nowMs: number): Capability | undefined {
    const found = this.#byKey.get(this.#keyOfDigest.get(digest) ?? '');
    if (found === undefined || !equal(found.digest, digest)) return undefined;
    return isExpired(found, nowMs) ? undefined : found;
  }

  /** Remove what has expired, and return it. */
  expire(nowMs: number): Capability[] {
    const gone: Capability[] = [];
    for (const [key, capability] of this.#byKey) {
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
