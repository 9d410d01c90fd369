// Taking a task: checked, told from an equal replay, stored, committed, in this order; only then answered.
import { create } from '@bufbuild/protobuf';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { ChangeSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { LIVE_SESSIONS_MAX, LIVE_SPECS_BYTES_MAX, TASK_OUTLINE_BYTES_MAX } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import type { Board } from '../dispatch/board.ts';
import type { Specs } from '../dispatch/specs.ts';
import { checkOffered } from '../domain/offers.ts';
import type { TaskState } from '../domain/state.ts';
import { specDigest, taskRecord } from '../domain/task.ts';
import { wasAnnounced } from './announced.ts';

export interface AdmissionOptions {
  readonly board: Board;
  readonly specs: Specs;
  readonly bus: Bus;
  readonly signal: AbortSignal;
}

interface Submission {
  readonly spec: TaskSpec;
  readonly requestId: string;
  readonly specSha256: string;
}

export class Admission {
  readonly #options: AdmissionOptions;
  /** Tasks on their way into the log, by task id and by request id. */
  readonly #submitting = new Map<string, Promise<TaskState>>();
  #sessions = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Takes a completed and checked spec; resolves when it is committed. An equal replay gets the first task. */
  async submit(spec: TaskSpec, requestId: string): Promise<TaskState> {
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

  #known({ spec, requestId, specSha256 }: Submission): TaskState | undefined {
    const { state } = this.#options.board;
    const task = state.tasks.get(spec.taskId);
    const ofRequest = state.byRequest(requestId);
    if (ofRequest !== undefined && ofRequest !== task) {
      throw new PolarError(
        'TASK_EXISTS',
        `request_id ${requestId} was used for task ${ofRequest.record.taskId}: choose another one`,
      );
    }
    if (task !== undefined && task.record.specSha256 !== specSha256) {
      throw new PolarError(
        'TASK_EXISTS',
        `task ${spec.taskId} is there with another content: choose another task_id`,
      );
    }
    return task;
  }

  async #admit(submission: Submission): Promise<TaskState> {
    const { board, specs, bus, signal } = this.#options;
    const { spec } = submission;
    const { taskId, numSamples } = spec;
    board.journal.admit();
    this.#checkRoom(numSamples);
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
      const record = taskRecord({
        ...submission,
        specRef,
        sessionPrefix: newId('s'),
        createMs: Date.now(),
      });
      await board.journal.propose(create(ChangeSchema, { kind: { case: 'task', value: record } }));
    } finally {
      this.#sessions -= numSamples;
    }
    const task = board.state.tasks.get(taskId);
    if (task === undefined) throw new Error(`task ${taskId} is committed and not there`);
    return task;
  }

  #checkRoom(numSamples: number): void {
    const { liveSessions, liveSpecsBytes } = this.#options.board.state;
    const sessions = liveSessions + this.#sessions + numSamples;
    const limit =
      sessions > LIVE_SESSIONS_MAX
        ? `LIVE_SESSIONS_MAX (${LIVE_SESSIONS_MAX}) sessions`
        : liveSpecsBytes + TASK_OUTLINE_BYTES_MAX > LIVE_SPECS_BYTES_MAX
          ? `LIVE_SPECS_BYTES_MAX (${LIVE_SPECS_BYTES_MAX}) bytes of task specs`
          : undefined;
    if (limit === undefined) return;
    throw new PolarError('LIVE_SESSIONS_LIMIT', `at most ${limit} may be live: wait for some to end`);
  }
}

const noValue = (): void => {};
