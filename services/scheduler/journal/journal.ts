// Group commit: one commit is on its way, what is proposed meanwhile goes into the next. State changes only after the
// acknowledgement; decisions are made on what is proposed, so that a session is never decided on twice.
import { setImmediate as turn } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type Change,
  ChangeSchema,
  CommitSchema,
  type SessionRecord,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { COMMIT_BYTES_MAX, RPC_TIMEOUT_MS, STATE_QUEUE_MAX } from '../../common/limits.ts';
import { unixMs } from '../dispatch/clock.ts';
import { sessionOf } from '../domain/session.ts';
import type { SessionChange, State, TaskState } from '../domain/state.ts';
import type { Chain } from './chain.ts';

/** Between two looks at what a caller waits for. */
const COMMIT_LOOK_MS = 250;

interface Proposal {
  /** In one commit. */
  readonly changes: readonly Change[];
  readonly bytes: Uint8Array;
  /** Set on the last one of a call. */
  readonly done: PromiseWithResolvers<void> | undefined;
}

export interface JournalOptions {
  readonly chain: Chain;
  readonly state: State;
  readonly epoch: number;
  readonly signal: AbortSignal;
  /** After a change is committed and applied. Must not throw. */
  readonly onCommitted: (change: Change, session: SessionChange | undefined) => void;
  /** After all changes of a commit are applied. Must not throw. */
  readonly afterCommit: () => void;
  /** The log is closed to us; called once, before the waiting calls fail. */
  readonly onFailed: (error: PolarError) => void;
}

export class Journal {
  readonly #options: JournalOptions;
  readonly #latest = new Map<string, SessionRecord>();
  #waiting: Proposal[] = [];
  #committing = false;
  #failed: PolarError | undefined;
  #appliedSeq: number;
  #commits = 0;
  #bytes = 0;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#appliedSeq = options.chain.seq;
  }

  /** Sequence of the last commit that the state holds. */
  get appliedSeq(): number {
    return this.#appliedSeq;
  }

  /** Commits so far, and their bytes. */
  get written(): { readonly commits: number; readonly bytes: number } {
    return { commits: this.#commits, bytes: this.#bytes };
  }

  /** No more should be proposed than must be. */
  get full(): boolean {
    return this.#waiting.length >= STATE_QUEUE_MAX;
  }

  /** Throws STATE_QUEUE_LIMIT when no RPC may add a change, NATS_STORE_FULL when none could be stored. */
  admit(): void {
    const { problem } = this.#options.chain;
    if (problem instanceof PolarError) throw problem;
    if (!this.full) return;
    throw new PolarError(
      'STATE_QUEUE_LIMIT',
      `STATE_QUEUE_MAX (${STATE_QUEUE_MAX}) changes wait for the state log; call again`,
    );
  }

  /** The session as it will be once everything proposed is committed. */
  latest(task: TaskState, sampleIndex: number): SessionRecord {
    const id = `${task.record.sessionPrefix}-${sampleIndex}`;
    return this.#latest.get(id) ?? this.#options.state.session(task, sampleIndex);
  }

  /**
   * Resolves when the changes are committed and applied, in order, in as many commits as they need. Rejects when the log
   * is closed to us.
   */
  async propose(...changes: Change[]): Promise<void> {
    await this.proposeParts(changes.map((change) => [change]));
  }

  /** The same of changes that are in the log all or none: they must be at most COMMIT_BYTES_MAX. */
  async proposeAtOnce(changes: Change[]): Promise<void> {
    await this.proposeParts([changes]);
  }

  /** The same of several such parts, in order. */
  async proposeParts(parts: readonly Change[][]): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    const done = Promise.withResolvers<void>();
    for (const [i, changes] of parts.entries()) {
      for (const { kind } of changes) {
        if (kind.case === 'session') this.#latest.set(sessionOf(kind.value).sessionId, kind.value);
      }
      // Commits joined byte by byte are one commit of all their changes.
      const bytes = toBinary(CommitSchema, create(CommitSchema, { changes }));
      this.#waiting.push({ changes, bytes, done: i === parts.length - 1 ? done : undefined });
    }
    void this.#commitAll();
    if (parts.length > 0) await done.promise;
  }

  /** Resolves when everything proposed so far is committed. */
  async settled(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    if (!this.#committing && this.#waiting.length === 0) return;
    await this.propose(create(ChangeSchema));
  }

  /**
   * Waits for a proposal on behalf of a caller: at most RPC_TIMEOUT_MS, and not where nothing can be stored. Rejects with
   * the reason why the log does not go on; the proposal stays.
   */
  async within(committed: Promise<void>): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const untilMs = performance.now() + RPC_TIMEOUT_MS;
    const timer = setInterval(() => {
      const { problem } = this.#options.chain;
      const reason = problem instanceof PolarError ? problem.reason : 'NATS_UNAVAILABLE';
      if (reason === 'NATS_UNAVAILABLE' && performance.now() < untilMs) return;
      const { message } = asPolarError(problem ?? 'the state log is slow');
      reject(new PolarError(reason, `not committed so far; call again: ${message}`));
    }, COMMIT_LOOK_MS);
    try {
      await Promise.race([committed, promise]);
    } finally {
      clearInterval(timer);
    }
  }

  /** Takes no more changes; those that wait fail so that their caller calls again, and finds the scheduler that goes on. */
  close(error: PolarError): void {
    if (this.#failed !== undefined) return;
    const told = new PolarError('SHUTTING_DOWN', `call again: ${error.message}`, { cause: error });
    this.#failed = told;
    this.#options.onFailed(error);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { done } of waiting) {
      done?.promise.catch(() => {});
      done?.reject(told);
    }
  }

  async #commitAll(): Promise<void> {
    if (this.#committing) return;
    this.#committing = true;
    try {
      // What a change brings about goes into its commit: a session that is ready is given a run slot a turn later.
      await turn();
      for (;;) {
        await turn();
        if (this.#waiting.length === 0) return;
        await this.#commit(this.#takeSome());
      }
    } catch (error) {
      this.close(asPolarError(error));
    } finally {
      this.#committing = false;
    }
  }

  #takeSome(): Proposal[] {
    let count = 0;
    let bytes = 0;
    for (const one of this.#waiting) {
      if (count > 0 && bytes + one.bytes.byteLength > COMMIT_BYTES_MAX) break;
      bytes += one.bytes.byteLength;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #commit(part: readonly Proposal[]): Promise<void> {
    const { chain, state, epoch, signal, onCommitted, afterCommit } = this.#options;
    const head = toBinary(
      CommitSchema,
      create(CommitSchema, { epoch: BigInt(epoch), unixMs: BigInt(unixMs()) }),
    );
    const bytes = Buffer.concat([head, ...part.map((one) => one.bytes)]);
    try {
      await chain.append(bytes, `${epoch}:${chain.seq + 1}`, signal);
    } catch (error) {
      // Those that wait for it are told with all others.
      this.#waiting.unshift(...part);
      throw error;
    }
    for (const { changes, done } of part) {
      for (const change of changes) {
        const session = state.apply(change);
        if (session !== undefined) this.#forgetLatest(session.after);
        onCommitted(change, session);
      }
      done?.resolve();
    }
    this.#appliedSeq = chain.seq;
    this.#commits++;
    this.#bytes += bytes.byteLength;
    afterCommit();
  }

  #forgetLatest(record: SessionRecord): void {
    const { sessionId } = sessionOf(record);
    if (this.#latest.get(sessionId) === record) this.#latest.delete(sessionId);
  }
}
