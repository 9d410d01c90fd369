// Taking a task: checked, told from an equal replay, stored, committed, in this order; only then answered.
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { TaskRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { Task } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { LIVE_SESSIONS_MAX, LIVE_SPECS_BYTES_MAX, TASK_OUTLINE_BYTES_MAX } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { type Archive, recordOf } from '../archive/archive.ts';
import { archivedView } from '../archive/lookup.ts';
import type { Board } from '../dispatch/board.ts';
import type { Specs } from '../dispatch/specs.ts';
import { checkOffered } from '../domain/offers.ts';
import { type TaskState, taskChange } from '../domain/state.ts';
import { specDigest, taskRecord } from '../domain/task.ts';
import { taskView } from '../domain/view.ts';
import { wasAnnounced } from './announced.ts';

export interface AdmissionOptions {
  readonly board: Board;
  readonly specs: Specs;
  readonly archive: Archive;
  readonly bus: Bus;
  readonly signal: AbortSignal;
}

/** A task that was taken, now or before. */
export interface Submitted {
  readonly task: Task;
  readonly sessionPrefix: string;
}

interface Submission {
  readonly spec: TaskSpec;
  readonly requestId: string;
  readonly specSha256: string;
}

export class Admission {
  readonly #options: AdmissionOptions;
  /** Tasks on their way into the log, by task id and by request id. */
  readonly #submitting = new Map<string, Promise<Submitted>>();
  #sessions = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Takes a completed and checked spec; resolves when it is committed. An equal replay gets the first task. */
  async submit(spec: TaskSpec, requestId: string): Promise<Submitted> {
    const { journal } = this.#options.board;
    const submission = { spec, requestId: requestId || spec.taskId, specSha256: specDigest(spec) };
    const keys = [`task ${spec.taskId}`, `request ${submission.requestId}`];
    for (;;) {
      const known = this.#known(submission);
      if (known !== undefined) return known;
      const other = keys.map((key) => this.#submitting.get(key)).find((one) => one !== undefined);
      if (other === undefined) break;
      await journal.within(other.then(noValue, noValue));
    }
    const admitting = this.#admit(submission).finally(() => {
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
    return task && submitted(task);
  }

  /** The same of one that has ended and left memory. */
  async #ended(submission: Submission): Promise<Submitted | undefined> {
    const { archive } = this.#options;
    const [task, ofRequest] = await Promise.all([
      archive.task(submission.spec.taskId),
      archive.byRequest(submission.requestId),
    ]);
    checkEqual(submission, task?.record, ofRequest?.record);
    return task && { task: archivedView(task), sessionPrefix: recordOf(task).sessionPrefix };
  }

  async #admit(submission: Submission): Promise<Submitted> {
    const { board, specs, bus, signal } = this.#options;
    const ended = await this.#ended(submission);
    if (ended !== undefined) return ended;
    const { spec } = submission;
    const { taskId, numSamples } = spec;
    board.journal.admit();
    this.checkRoom(numSamples);
    checkOffered(board.nodes.healthy, spec);
    this.#sessions += numSamples;
    try {
      if (await wasAnnounced(bus, taskId, signal)) {
        throw new PolarError(
          'TASK_EXISTS',
          `task ${taskId} ran before and its trajectories are there: choose another task_id`,
        );
      }
      const specRef = await specs.store(spec, signal);
      this.#checkTombstone(taskId);
      const record = taskRecord({
        ...submission,
        specRef,
        sessionPrefix: newId('s'),
        createMs: Date.now(),
      });
      await board.journal.propose(taskChange(record));
    } finally {
      this.#sessions -= numSamples;
    }
    const task = board.state.tasks.get(taskId);
    if (task === undefined) throw new Error(`task ${taskId} is committed and not there`);
    return submitted(task);
  }

  #checkTombstone(taskId: string): void {
    if (!this.#options.board.state.isCancelledAhead(taskId, Date.now())) return;
    throw new PolarError('TASK_CANCELLED', `task ${taskId} was cancelled before it was submitted`);
  }

  /** Throws LIVE_SESSIONS_LIMIT where so many more sessions may not be live. */
  checkRoom(numSamples: number): void {
    const { state } = this.#options.board;
    const sessions = state.sessions + this.#sessions + numSamples;
    const limit =
      sessions > LIVE_SESSIONS_MAX
        ? `LIVE_SESSIONS_MAX (${LIVE_SESSIONS_MAX}) sessions`
        : state.specsBytes + TASK_OUTLINE_BYTES_MAX > LIVE_SPECS_BYTES_MAX
          ? `LIVE_SPECS_BYTES_MAX (${LIVE_SPECS_BYTES_MAX}) bytes of task specs`
          : undefined;
    if (limit === undefined) return;
    throw new PolarError('LIVE_SESSIONS_LIMIT', `at most ${limit} may be live: wait for some to end`);
  }
}

const submitted = (task: TaskState): Submitted => ({
  task: taskView(task),
  sessionPrefix: task.record.sessionPrefix,
});

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
