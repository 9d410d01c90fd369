// The lease by which one scheduler leads: a key without an age, dead when its revision has stood still for LEASE_MS of the
// observer's own clock. It decides who tries and who may answer; the chain of the state log decides who may write.
import { create, toBinary } from '@bufbuild/protobuf';
import { type LeaseRecord, LeaseRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { LEASE_HELD_MS, LEASE_MS, LEASE_POLL_MS, LEASE_RENEW_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { LEASE_KEY as KEY, leaderIn } from '../../common/nats/leader.ts';
import { cameSecond, HEADER_BEHIND, storeFull } from '../../common/nats/publish.ts';
import { subjectOfKey } from '../../common/nats/streams.ts';

export interface LeaseOptions {
  readonly bus: Bus;
  /** Where this scheduler answers. */
  readonly publicUrl: string;
  /** Where it listens; see place.ts. */
  readonly place: string;
}

export class Lease {
  readonly #bus: Bus;
  readonly #own: LeaseRecord;
  #revision = 0;
  #heldUntil = 0;
  /** The same by the wall clock: the steady one does not see that the machine sleeps, as one does that is suspended. */
  #heldUntilUnixMs = 0;
  #leader: LeaseRecord | undefined;
  #problem: unknown;

  constructor({ bus, publicUrl, place }: LeaseOptions) {
    this.#bus = bus;
    this.#own = create(LeaseRecordSchema, { holder: newId('scheduler'), publicUrl, place });
  }

  get holder(): string {
    return this.#own.holder;
  }

  /** True only while no observer can have found the lease dead. */
  get held(): boolean {
    return performance.now() < this.#heldUntil && Date.now() < this.#heldUntilUnixMs;
  }

  /** Why it is not renewed: NATS_STORE_FULL, NATS_UNAVAILABLE. */
  get problem(): PolarError {
    const full = storeFull(subjectOfKey('lease', KEY), this.#problem);
    if (full !== undefined) return full;
    const why = this.#problem === undefined ? 'NATS does not answer' : asPolarError(this.#problem).message;
    const message = `the lead cannot be kept, so that another scheduler may lead; call again: ${why}`;
    return new PolarError('NATS_UNAVAILABLE', message, { cause: this.#problem });
  }

  /** Waits until it is held without a doubt. Throws the signal's reason. */
  async confirmed(signal: AbortSignal): Promise<void> {
    while (!this.held) {
      signal.throwIfAborted();
      await sleep(LEASE_POLL_MS, signal);
    }
  }

  /** Who else leads, as far as is known. */
  get leader(): LeaseRecord | undefined {
    return this.#leader;
  }

  /** Waits until the lease is ours; `onFollowing` is told of each other holder. Returns false when the signal aborts. */
  async acquire(signal: AbortSignal, onFollowing: (leader: LeaseRecord) => void): Promise<boolean> {
    let seen = -1;
    let sinceMs = 0;
    while (!signal.aborted) {
      try {
        const kv = await this.#bus.kv('lease');
        const entry = await kv.get(KEY);
        const revision = entry?.revision ?? 0;
        if (revision !== seen) {
          seen = revision;
          sinceMs = performance.now();
        }
        const leader = leaderIn(entry);
        const dead = performance.now() - sinceMs >= LEASE_MS;
        if (leader === undefined || dead || this.#succeeds(leader)) {
          await this.#write(revision);
          this.#leader = undefined;
          return true;
        }
        if (leader.holder !== this.#leader?.holder) onFollowing(leader);
        this.#leader = leader;
      } catch {
        // NATS is away, or another one was faster: what stood still meanwhile says nothing.
        seen = -1;
      }
      await sleep(LEASE_POLL_MS, signal);
    }
    return false;
  }

  /** Renews until another scheduler has it or the signal aborts; `onTried` hears of each try. */
  async keep(signal: AbortSignal, onTried: () => void): Promise<void> {
    for (; ; onTried()) {
      await sleep(LEASE_RENEW_MS, signal);
      if (signal.aborted) return;
      try {
        await this.#write(this.#revision);
      } catch (error) {
        this.#problem = error;
        if (!(await this.#isStillOurs(error))) break;
      }
    }
    this.#heldUntil = 0;
  }

  /** Another one can have it at once. */
  async giveBack(): Promise<void> {
    this.#heldUntil = 0;
    // Who only followed has nothing to give: the client would delete whatever is there, which is the leader's.
    if (this.#revision === 0) return;
    try {
      await (await this.#bus.kv('lease')).delete(KEY, { previousSeq: this.#revision });
    } catch {
      // It is another one's by now, or will be after LEASE_MS.
    }
  }

  /** Whether we are what comes after the holder: its process is gone where we listen. */
  #succeeds({ holder, place }: LeaseRecord): boolean {
    return holder === this.#own.holder || (place !== '' && place === this.#own.place);
  }

  /** Compare and set. */
  async #write(behind: number): Promise<void> {
    const [begunMs, begunUnixMs] = [performance.now(), Date.now()];
    const bytes = toBinary(LeaseRecordSchema, this.#own);
    const fields = { [HEADER_BEHIND]: String(behind) };
    const { seq } = await this.#bus.acks.store(subjectOfKey('lease', KEY), bytes, fields);
    this.#revision = seq;
    this.#heldUntil = begunMs + LEASE_HELD_MS;
    this.#heldUntilUnixMs = begunUnixMs + LEASE_HELD_MS;
    this.#problem = undefined;
  }

  /** A renewal failed: NATS may be away, its answer may be lost, another one may have been faster. */
  async #isStillOurs(error: unknown): Promise<boolean> {
    try {
      const entry = await (await this.#bus.kv('lease')).get(KEY);
      const leader = leaderIn(entry);
      if (leader?.holder !== this.#own.holder) {
        this.#leader = leader;
        return false;
      }
      this.#revision = entry?.revision ?? 0;
      return true;
    } catch {
      return !cameSecond(error);
    }
  }
}
