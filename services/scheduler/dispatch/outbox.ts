// What a committed session causes outside: work for services, stop signals for nodes, the end of credentials. All of it
// follows from state and has an id of its own, so that a take-over repeats it without harm.
import { create, toBinary } from '@bufbuild/protobuf';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { RevokeSchema, WorkSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failureOf } from '../../common/errors.ts';
import { LEASE_MAX_MS } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { deleteCapability, storeCapability } from '../../common/nats/capabilities.ts';
import { publish } from '../../common/nats/publish.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { budgetMs, newStages, type Stage, stagesOf } from '../domain/budgets.ts';
import { isOpen, needsSandbox, refOf, SessionState, sessionOf } from '../domain/session.ts';
import type { SessionChange, TaskState } from '../domain/state.ts';
import { capabilityOf, needsUploads, workOf } from '../domain/work.ts';
import type { Board, Found } from './board.ts';
import type { Effects } from './effects.ts';
import type { Specs } from './specs.ts';

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

  /**
   * Makes the key valid that opens the LLM proxy to who has a session elsewhere; durable when it returns. Once it has been
   * taken back it stays so.
   */
  async grant({ task, record }: Found): Promise<void> {
    const { bus, signal } = this.#options;
    const { keySha256 } = record.opened ?? {};
    if (keySha256 === undefined) return;
    const validMs = budgetMs(task.spec, 'run') + LEASE_MAX_MS;
    const capability = capabilityOf(record, task.spec, keySha256, Date.now() + validMs);
    await storeCapability(bus, refOf(record), capability, validMs, signal);
  }

  /** Sends the work again that a session's state implies, under the same ids. */
  resend(task: TaskState, record: SessionRecord): void {
    if (isOpen(record) && record.closed === undefined) this.#regrant(task, record);
    for (const stage of stagesOf(record, task.spec)) this.#sendWork(task, record, stage);
  }

  /** Who opened it may not have been answered, and asks again: then it is there. */
  #regrant(task: TaskState, record: SessionRecord): void {
    const { board, effects } = this.#options;
    const { sessionId } = sessionOf(record);
    effects.start({
      wanted: () => board.find(sessionId)?.record === record,
      run: () => this.grant({ task, record }),
    });
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
        await deleteCapability(bus, { sessionId, attempt });
      },
    });
  }
}

/** A run that did not come to its end: a harness executor that tells one has deleted the credential before. */
function isCutShort(before: SessionRecord, after: SessionRecord): boolean {
  const [from, to] = [sessionOf(before).state, sessionOf(after).state];
  return from === SessionState.RUNNING && to !== SessionState.RUNNING && to !== SessionState.FINISHING;
}
