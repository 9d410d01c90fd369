// Who has a session open with a lease says now and then that it is there. That is known in memory alone: where this process
// begins, or was not to be heard, each has its whole lease again.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { isOpen, sessionOf } from './session.ts';

const OPEN_LEASE_MS_MIN = 1_000;
export const OPEN_LEASE_MS_MAX = 3_600_000;
/** Looks that are further apart than this: the process stood still between them. */
const STILL_MS = 2_000;

/** What is wrong with a lease that is asked for. */
export const leaseFault = (leaseMs: number): string | undefined =>
  leaseMs >= OPEN_LEASE_MS_MIN && leaseMs <= OPEN_LEASE_MS_MAX
    ? undefined
    : `must be ${OPEN_LEASE_MS_MIN / 1_000} s to ${OPEN_LEASE_MS_MAX / 1_000} s, or unset`;

interface Renewal {
  readonly attempt: number;
  readonly ms: number;
}

/** Times are Unix time in milliseconds, by a clock that nobody sets. */
export class OpenLeases {
  /** By session, oldest first. */
  readonly #renewals = new Map<string, Renewal>();
  readonly #isHeard: () => boolean;
  #fromMs: number;
  #lookMs: number;

  /** `isHeard`: whether calls are answered now. */
  constructor(nowMs: number, isHeard: () => boolean) {
    this.#isHeard = isHeard;
    this.#fromMs = nowMs;
    this.#lookMs = nowMs;
  }

  renew({ sessionId, attempt }: { sessionId: string; attempt: number }, nowMs: number): void {
    this.#renewals.delete(sessionId);
    this.#renewals.set(sessionId, { attempt, ms: nowMs });
  }

  /** To be called at every tick. */
  look(nowMs: number): void {
    if (!this.#isHeard() || nowMs - this.#lookMs > STILL_MS) this.#fromMs = nowMs;
    this.#lookMs = nowMs;
    for (const [sessionId, { ms }] of this.#renewals) {
      if (nowMs - ms <= OPEN_LEASE_MS_MAX) break;
      this.#renewals.delete(sessionId);
    }
  }

  /** Whether its caller has said nothing for longer than its lease. */
  hasLapsed(record: SessionRecord, nowMs: number): boolean {
    const leaseMs = Number(record.opened?.leaseMs ?? 0n);
    if (leaseMs === 0 || !isOpen(record) || record.closed !== undefined) return false;
    const { sessionId, attempt } = sessionOf(record);
    const renewal = this.#renewals.get(sessionId);
    const renewedMs = renewal?.attempt === attempt ? renewal.ms : 0;
    return nowMs - Math.max(this.#fromMs, Number(record.stateMs), renewedMs) > leaseMs;
  }
}
