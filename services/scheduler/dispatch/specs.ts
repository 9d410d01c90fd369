// Task specs with their file contents, which state does not hold: from the task's record, or from the blob store. There lies
// what has files alone, so that tasks which differ in their instruction, as those of another epoch, share a blob.
import { create, toBinary } from '@bufbuild/protobuf';
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { TaskRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { INLINE_BYTES_MAX, SPECS_CACHED_MAX } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import { fromStored } from '../../common/stored.ts';
import { outlineOfRecord } from '../domain/task.ts';

export class Specs {
  readonly #blobs: BlobStore;
  /** Least recently used first. */
  readonly #cached = new Map<string, Promise<TaskSpec>>();

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** Stores the files of a spec that is too large for the log; undefined where it is not. */
  async store(spec: TaskSpec, signal: AbortSignal): Promise<BlobRef | undefined> {
    if (toBinary(TaskSpecSchema, spec).byteLength <= INLINE_BYTES_MAX) return undefined;
    return await this.#blobs.put(toBinary(TaskSpecSchema, withFiles(spec)), signal);
  }

  /** The whole spec. Throws BLOB_MISSING. */
  async load(record: TaskRecord, signal: AbortSignal): Promise<TaskSpec> {
    const { taskId, spec } = record;
    if (spec.case === 'inlineSpec') return spec.value;
    if (spec.case === undefined) throw new Error(`task ${taskId} has no spec in its record`);
    // A specRef has more than files; what it has beside them is in the outline, too.
    const { runtime, harness, evaluator } = await this.#filesOf(spec.value, signal);
    const outline = outlineOfRecord(record);
    return {
      ...outline,
      ...(runtime && { runtime }),
      ...(outline.harness && { harness: { ...outline.harness, skills: harness?.skills ?? [] } }),
      ...(outline.evaluator && { evaluator: { ...outline.evaluator, files: evaluator?.files ?? [] } }),
    };
  }

  async #filesOf(ref: BlobRef, signal: AbortSignal): Promise<TaskSpec> {
    const { sha256 } = ref;
    const loading = this.#cached.get(sha256) ?? this.#fetch(ref, signal);
    this.#cached.delete(sha256);
    this.#cached.set(sha256, loading);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > SPECS_CACHED_MAX && oldest !== undefined) this.#cached.delete(oldest);
    try {
      return await loading;
    } catch (error) {
      if (this.#cached.get(sha256) === loading) this.#cached.delete(sha256);
      throw error;
    }
  }

  async #fetch(ref: BlobRef, signal: AbortSignal): Promise<TaskSpec> {
    return fromStored(TaskSpecSchema, await this.#blobs.get(ref, signal));
  }
}

/** The parts whose contents an outline leaves out. */
const withFiles = ({ runtime, harness, evaluator }: TaskSpec): TaskSpec =>
  create(TaskSpecSchema, {
    ...(runtime && { runtime }),
    ...(harness && { harness: { skills: harness.skills } }),
    ...(evaluator && evaluator.files.length > 0 && { evaluator: { files: evaluator.files } }),
  });
