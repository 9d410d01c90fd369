// One attempt at the proxy: its calls in flight, its records one after another, its end.

import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { failureOf, PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import {
  CALLS_IN_FLIGHT_PER_SESSION_MAX,
  CALLS_PER_ATTEMPT_MAX,
  ENGINE_CALL_MS,
  RECORD_TRIES_MAX,
} from '../../common/limits.ts';
import type { AttemptState, Draft, GoesOn } from '../domain/attempt-state.ts';
import type { Drift } from '../domain/drift.ts';
import type { Conversation } from '../domain/history.ts';
import { lastFailureOf } from '../domain/last-failure.ts';
import type { SessionRules } from '../domain/normalise.ts';
import type { StoredReplies } from '../domain/stored-replies.ts';
import type { AttemptKey, RecordLog } from './record-log.ts';
import { TimeLimit } from './time-limit.ts';

/** Silence in a streamed reply that has begun. Whole ones are silent for as long as they are sampled. */
const ENGINE_SILENCE_MS = 300_000;
const SPANS = { totalMs: ENGINE_CALL_MS, silenceMs: ENGINE_SILENCE_MS };

/** A model call in flight. */
export interface Call {
  readonly id: string;
  readonly startSeq: bigint;
  /**
   * Aborts when the harness has left, the attempt is closed, or its time is over, and when its try is given up: then it is
   * another one for the next try. The reason is a PolarError.
   */
  readonly signal: AbortSignal;
  abort(reason: PolarError): void;
  /** Its try is over, and another one may follow. */
  giveUp(why: PolarError): void;
  /** A try has its place at an engine: from the first one on, its time is counted. */
  start(): void;
  /** A piece of the reply has come. */
  heard(): void;
  /** Its time limit does not count what passes until this is disposed of. */
  hold(): Disposable;
  /** Exactly once, when everything of the call is done; with the error where it failed. */
  end(error?: unknown): void;
}

/** What remains of an attempt that is closed. */
export interface Closed {
  readonly calls: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly lastFailure: Failure | undefined;
  /** A call of it has gone well in this process. */
  readonly hasServed: boolean;
}

export class Attempt {
  readonly key: AttemptKey;
  readonly #log: RecordLog;
  readonly #inFlight = new Set<Call>();
  #state: AttemptState;
  #order: bigint;
  /** Added to the numbers of what is recorded from now on: records were there that had such numbers. */
  #shift = 0n;
  #lastFailure: Failure | undefined;
  #writing: Promise<unknown> = Promise.resolve();
  #idle: PromiseWithResolvers<void> | undefined;
  #closed = false;
  #hasServed = false;

  constructor(key: AttemptKey, log: RecordLog, state: AttemptState) {
    this.key = key;
    this.#log = log;
    this.#state = state;
    this.#order = state.nextOrder;
    this.#lastFailure = lastFailureOf(state.lastErrorReason);
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** The next number of the counter that begins and ends of calls share. */
  order(): bigint {
    return this.#order++;
  }

  /** Throws SESSION_CLOSED, CALLS_IN_FLIGHT_LIMIT, CALLS_PER_ATTEMPT_LIMIT. */
  begin(): Call {
    this.requireOpen();
    if (this.#inFlight.size >= CALLS_IN_FLIGHT_PER_SESSION_MAX) {
      const message = `the session has ${CALLS_IN_FLIGHT_PER_SESSION_MAX} calls in flight`;
      throw new PolarError('CALLS_IN_FLIGHT_LIMIT', message, { retryAfterMs: 1_000 });
    }
    if (this.#state.calls + this.#inFlight.size >= CALLS_PER_ATTEMPT_MAX) {
      throw new PolarError('CALLS_PER_ATTEMPT_LIMIT', `the session has made ${CALLS_PER_ATTEMPT_MAX} calls`);
    }
    return this.#begin();
  }

  /** Throws SESSION_CLOSED. */
  requireOpen(): void {
    if (this.#closed) throw sessionClosed();
  }

  #begin(): Call {
    const call = new CallInFlight(this.order(), (error) => {
      this.#inFlight.delete(call);
      this.#settle(error);
      if (this.#inFlight.size === 0) this.#idle?.resolve();
    });
    this.#inFlight.add(call);
    return call;
  }

  /** A call that ended well clears what went wrong before it; what is not the mesh's fault leaves it as it was. */
  #settle(error: unknown): void {
    if (error === undefined) {
      this.#lastFailure = undefined;
      this.#hasServed = true;
    } else {
      const failure = failureOf(error);
      if (failure.infrastructure) this.#lastFailure = failure;
    }
  }

  /** Where a request goes on; a reason where it does not, empty where nothing came before it. */
  goesOn(asked: Conversation): GoesOn | Drift {
    return this.#state.goesOn(asked);
  }

  /** What rules that normalise need to know. */
  readonly rules: SessionRules = {
    restore: (message) => this.#state.said.restore(message),
    unnamed: (message) => this.#state.unnamed(message),
  };

  /** Replies that requests may name. */
  get stored(): StoredReplies {
    return this.#state.stored;
  }

  /** Write the next record; durable when it returns. Throws RECORD_NOT_WRITTEN. */
  record(draft: Draft): Promise<Completion> {
    const written = this.#writing.then(() => this.#write(draft));
    // Nothing of the record is held until the next one.
    const over = (): void => {};
    this.#writing = written.then(over, over);
    return written;
  }

  async #write(draft: Draft): Promise<Completion> {
    try {
      for (let tries = 0; tries < RECORD_TRIES_MAX; tries++) {
        const record = this.#state.encode(this.#numbered(draft));
        const seq = await this.#log.append(this.key, record, this.#state.lastSeq);
        if (seq !== undefined) {
          this.#state.apply(record, seq);
          return record;
        }
        // A publish that was given up has arrived after all, or the attempt was not new.
        this.#state = await this.#log.load(this.key);
        this.#goBehind(this.#state.nextOrder, draft);
      }
    } catch (error) {
      const message = `the record of a model call could not be written: ${(error as Error).message}`;
      throw new PolarError('RECORD_NOT_WRITTEN', message, { cause: error, retryAfterMs: 1_000 });
    }
    throw new PolarError('RECORD_NOT_WRITTEN', `another writer has this attempt's records`);
  }

  /** Calls that are to be recorded begin behind what the records say. */
  #goBehind(nextOrder: bigint, { fields }: Draft): void {
    let first = fields.startSeq ?? 0n;
    for (const { startSeq } of this.#inFlight) if (startSeq < first) first = startSeq;
    if (first + this.#shift < nextOrder) this.#shift = nextOrder - first;
  }

  #numbered(draft: Draft): Draft {
    if (this.#shift === 0n) return draft;
    const { startSeq = 0n, endSeq = 0n } = draft.fields;
    const [start, end] = [startSeq + this.#shift, endSeq + this.#shift];
    return { ...draft, fields: { ...draft.fields, startSeq: start, endSeq: end } };
  }

  /** No further calls; those in flight are aborted and their records written. */
  async close(): Promise<Closed> {
    this.#closed = true;
    for (const call of this.#inFlight) call.abort(sessionClosed());
    if (this.#inFlight.size > 0) {
      this.#idle ??= Promise.withResolvers();
      await this.#idle.promise;
    }
    await this.#writing;
    const { calls, firstSeq, lastSeq } = this.#state;
    return { calls, firstSeq, lastSeq, lastFailure: this.#lastFailure, hasServed: this.#hasServed };
  }
}

class CallInFlight implements Call {
  readonly id = newId('call');
  readonly startSeq: bigint;
  readonly #onEnd: (error: unknown) => void;
  #controller = new AbortController();
  readonly #limit = new TimeLimit(SPANS, (isSilent) => this.abort(isSilent ? silentReply() : lateReply()));

  constructor(startSeq: bigint, onEnd: (error: unknown) => void) {
    this.startSeq = startSeq;
    this.#onEnd = onEnd;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: PolarError): void {
    this.#controller.abort(reason);
  }

  giveUp(why: PolarError): void {
    const tried = this.#controller;
    // One that is over for good stays so.
    if (!tried.signal.aborted) this.#controller = new AbortController();
    tried.abort(why);
  }

  start(): void {
    this.#limit.start();
  }

  heard(): void {
    this.#limit.heard();
  }

  hold(): Disposable {
    return this.#limit.hold();
  }

  end(error?: unknown): void {
    this.#limit[Symbol.dispose]();
    this.#onEnd(error);
  }
}

const lateReply = (): PolarError =>
  new PolarError('ENGINE_TIMEOUT', `no whole reply within ${ENGINE_CALL_MS} ms`);

const silentReply = (): PolarError =>
  new PolarError(
    'ENGINE_TIMEOUT',
    `nothing more of the reply came, or was read, for ${ENGINE_SILENCE_MS} ms`,
  );

const sessionClosed = (): PolarError => new PolarError('SESSION_CLOSED', 'the session is closed');
