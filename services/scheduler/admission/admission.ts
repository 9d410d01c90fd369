// Taking tasks: checked, told from an equal replay, stored, committed, in this order; only then answered.
import { create, toBinary } from '@bufbuild/protobuf';
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { type Change, CommitSchema, type TaskRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { Task } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { COMMIT_BYTES_MAX } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { type Archive, recordOf } from '../archive/archive.ts';
import { archivedView } from '../archive/lookup.ts';
import type { Board } from '../dispatch/board.ts';
import { unixMs } from '../dispatch/clock.ts';
import type { Specs } from '../dispatch/specs.ts';
import type { NodeState } from '../domain/nodes.ts';
import { checkOffered } from '../domain/offers.ts';
import { sessionIdOf } from '../domain/session.ts';
import { taskChange } from '../domain/state.ts';
import { taskRecord } from '../domain/task.ts';
import { taskView } from '../domain/view.ts';
import { wasAnnounced } from './announced.ts';
import type { Room } from './room.ts';
import type { Submission } from './submission.ts';

export interface AdmissionOptions {
  readonly board: Board;
  readonly specs: Specs;
  readonly archive: Archive;
  readonly room: Room;
  readonly bus: Bus;
  readonly signal: AbortSignal;
}

/** A task that was taken, now or before. */
export interface Submitted {
  readonly task: Task;
  /** By sample index. */
  readonly sessionIds: string[];
}

export class Admission {
  readonly #options: AdmissionOptions;
  /** Tasks on their way into the log, by task id and by request id. */
  readonly #submitting = new Map<string, Promise<Submitted[]>>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /**
   * Takes checked tasks, all of them or none; resolves when they are committed, at once. Of an equal replay it is the
   * first task that comes back.
   */
  async submit(submissions: readonly Submission[]): Promise<Submitted[]> {
    const { journal } = this.#options.board;
    const keys = submissions.flatMap(({ spec, requestId }) => [
      `task ${spec.taskId}`,
      `request ${requestId}`,
    ]);
    for (;;) {
      const known = submissions.map((one) => this.#known(one)).filter((one) => one !== undefined);
      if (known.length === submissions.length) return known;
      const other = keys.map((key) => this.#submitting.get(key)).find((one) => one !== undefined);
      if (other === undefined) break;
      await journal.within(other.then(noValue, noValue));
    }
    const admitting = this.#admit(submissions).finally(() => {
      for (const key of keys) this.#submitting.delete(key);
    });
    for (const key of keys) this.#submitting.set(key, admitting);
    await journal.within(admitting.then(noValue));
    return await admitting;
  }

  /** A task in memory that was submitted so. */
  #known(submission: Submission): Submitted | undefined {
    const { state } = this.#options.board;
    const task = state.tasks.get(submission.spec.taskId);
    checkEqual(submission, task?.record, state.byRequest(submission.requestId)?.record);
    return task && submitted(taskView(task), task.record);
  }

  /** The same of one that has ended and left memory. */
  async #ended(submission: Submission): Promise<Submitted | undefined> {
    const { archive } = this.#options;
    const [task, ofRequest] = await Promise.all([
      archive.task(submission.spec.taskId),
      archive.byRequest(submission.requestId),
    ]);
    checkEqual(submission, task?.record, ofRequest?.record);
    return task && submitted(archivedView(task), recordOf(task));
  }

  async #admit(submissions: readonly Submission[]): Promise<Submitted[]> {
    const known = await Promise.all(submissions.map(async (one) => this.#known(one) ?? this.#ended(one)));
    const fresh = submissions.filter((_, i) => known[i] === undefined);
    if (fresh.length > 0) await this.#commit(fresh);
    return submissions.map((one, i) => known[i] ?? this.#justCommitted(one));
  }

  #justCommitted({ spec: { taskId } }: Submission): Submitted {
    const task = this.#options.board.state.tasks.get(taskId);
    if (task === undefined) throw new Error(`task ${taskId} is committed and not there`);
    return submitted(taskView(task), task.record);
  }

  async #commit(submissions: readonly Submission[]): Promise<void> {
    const { board, room } = this.#options;
    board.journal.admit();
    // Before any files are stored.
    room.check(submissions.reduce((sum, { spec }) => sum + spec.numSamples, 0));
    for (const submission of submissions) checkOfferedOf(submission, board.nodes.healthy);
    const filesRefs = await Promise.all(submissions.map((one) => this.#stored(one)));
    const createMs = unixMs();
    const changes = submissions.map(({ path: _, ...one }, i) => {
      this.#checkTombstone(one.spec.taskId, createMs);
      return taskChange(taskRecord({ ...one, filesRef: filesRefs[i], sessionPrefix: newId('s'), createMs }));
    });
    if (changes.length > 1) checkCommitSize(changes);
    await room.hold(changes, () => board.journal.proposeAtOnce(changes));
  }

  /** Where its files are, if it is too large for the log. */
  async #stored({ spec }: Submission): Promise<BlobRef | undefined> {
    const { specs, bus, signal } = this.#options;
    if (await wasAnnounced(bus, spec.taskId, signal)) {
      throw new PolarError(
        'TASK_EXISTS',
        `task ${spec.taskId} ran before and its trajectories are there: choose another task_id`,
      );
    }
    return await specs.store(spec, signal);
  }

  #checkTombstone(taskId: string, nowMs: number): void {
    if (!this.#options.board.state.isCancelledAhead(taskId, nowMs)) return;
    throw new PolarError('TASK_CANCELLED', `task ${taskId} was cancelled before it was submitted`);
  }
}

const submitted = (task: Task, { sessionPrefix, numSamples }: TaskRecord): Submitted => ({
  task,
  sessionIds: Array.from({ length: numSamples }, (_, i) => sessionIdOf(sessionPrefix, i)),
});

/** As `checkOffered`; of a batch, the error says which task it is. */
function checkOfferedOf({ spec, path }: Submission, healthy: readonly NodeState[]): void {
  try {
    checkOffered(healthy, spec);
  } catch (error) {
    if (path === '' || !(error instanceof PolarError)) throw error;
    const fields = error.fields.map(({ field, description }) => ({ field: `${path}${field}`, description }));
    throw new PolarError(error.reason, `task ${spec.taskId}: ${error.message}`, { fields });
  }
}

function checkCommitSize(changes: Change[]): void {
  const bytes = toBinary(CommitSchema, create(CommitSchema, { changes })).byteLength;
  if (bytes <= COMMIT_BYTES_MAX) return;
  const description = `are ${bytes} bytes in the log, at most COMMIT_BYTES_MAX (${COMMIT_BYTES_MAX}): submit fewer at once`;
  throw faulty('INVALID_TASK', 'the batch', [{ field: 'tasks', description }]);
}

/** Throws TASK_EXISTS where the task or the request is there with another content. */
function checkEqual(
  { spec: { taskId }, requestId, specSha256 }: Submission,
  task: TaskRecord | undefined,
  ofRequest: TaskRecord | undefined,
): void {
  if (ofRequest !== undefined && ofRequest.taskId !== taskId) {
    throw new PolarError(
      'TASK_EXISTS',
      `request_id ${requestId} was used for task ${ofRequest.taskId}: choose another one`,
    );
  }
  if (task !== undefined && task.specSha256 !== specSha256) {
    throw new PolarError(
      'TASK_EXISTS',
      `task ${taskId} is there with another content: choose another task_id`,
    );
  }
}

const noValue = (): void => {};
