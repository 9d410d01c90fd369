// What a committed session causes outside: work for services, stop signals for nodes, the end of credentials. All of it
// follows from state and has an id of its own, so that a take-over repeats it without harm.
import { create, toBinary } from '@bufbuild/protobuf';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { RevokeSchema, WorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failureOf } from '../../common/errors.ts';
import { EXEC_TIMEOUT_MAX_MS, LEASE_MAX_MS } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { deleteKey, publish } from '../../common/nats/publish.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { newStages, type Stage, stagesOf } from '../domain/budgets.ts';
import { needsSandbox, refOf, SessionState, sessionOf } from '../domain/session.ts';
import type { SessionChange, TaskState } from '../domain/state.ts';
import { needsUploads, workOf } from '../domain/work.ts';
import type { Board } from './board.ts';
import type { Effects } from './effects.ts';
import type { Specs } from './specs.ts';

/** Longer than any credential is valid: a run's longest budget, and LEASE_MAX_MS. */
const REVOKED_KNOWN_MS = EXEC_TIMEOUT_MAX_MS + LEASE_MAX_MS;

export interface OutboxOptions {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly board: Board;
  readonly effects: Effects;
  readonly specs: Specs;
  readonly signal: AbortSignal;
}

export class Outbox {
  readonly #options: OutboxOptions;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** A session changed, durably. */
  committed({ task, before, after }: SessionChange): void {
    for (const stage of newStages(before, after, task.spec)) this.#sendWork(task, after, stage);
    if (needsSandbox(before, task.spec) && !needsSandbox(after, task.spec)) this.#revoke(before);
    if (isCutShort(before, after)) this.#endCapability(before);
  }

  /** Sends the work again that a session's state implies, under the same ids. */
  resend(task: TaskState, record: SessionRecord): void {
    for (const stage of stagesOf(record, task.spec)) this.#sendWork(task, record, stage);
  }

  #sendWork(task: TaskState, record: SessionRecord, stage: Stage): void {
    const { bus, blobs, board, effects, specs, signal } = this.#options;
    const { sessionId, attempt, nodeId } = sessionOf(record);
    const present = () => board.find(sessionId);
    const wanted = (): boolean => {
      const now = present()?.record;
      return (
        now !== undefined && sessionOf(now).attempt === attempt && stagesOf(now, task.spec).includes(stage)
      );
    };
    effects.start({
      wanted,
      run: async () => {
        const spec = needsUploads(stage, task.spec) ? await specs.load(task.record, signal) : task.spec;
        const bytes = toBinary(WorkSchema, workOf(record, spec, stage));
        const msgId = `${sessionId}:${attempt}:${stage}`;
        const outline = toBinary(WorkSchema, create(WorkSchema, { ref: refOf(record) }));
        await publish(bus, blobs, subjects.work(stage, nodeId), bytes, { msgId, outline, signal });
      },
      giveUp: (error) => {
        const found = present();
        if (error.reason !== 'BLOB_MISSING' || found === undefined || !wanted()) return false;
        board.lose(found, failureOf(error));
        return true;
      },
    });
  }

  /** Not stored: the answer to the node's next heartbeat says it again. */
  #revoke(record: SessionRecord): void {
    const { bus } = this.#options;
    const bytes = toBinary(RevokeSchema, create(RevokeSchema, { attempts: [refOf(record)] }));
    bus.acks.soon(() => bus.nc.publish(subjects.control(sessionOf(record).nodeId), bytes));
  }

  /** Best effort: a credential ends by its own expiry at the latest. */
  #endCapability(record: SessionRecord): void {
    const { bus, effects } = this.#options;
    const { sessionId, attempt } = sessionOf(record);
    let tried = false;
    effects.start({
      wanted: () => !tried,
      run: async () => {
        tried = true;
        await bus.kv('capabilities');
        await deleteKey(bus, 'capabilities', `${sessionId}.${attempt}`, REVOKED_KNOWN_MS);
      },
    });
  }
}

/** A run that did not come to its end: a harness executor that tells one has deleted the credential before. */
function isCutShort(before: SessionRecord, after: SessionRecord): boolean {
  const [from, to] = [sessionOf(before).state, sessionOf(after).state];
  return from === SessionState.RUNNING && to !== SessionState.RUNNING && to !== SessionState.FINISHING;
}
