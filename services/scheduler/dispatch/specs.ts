// Task specs with their file contents, which state does not hold: from the task's record, or from the blob store.
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { type TaskSpec, TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { TaskRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { INLINE_BYTES_MAX, SPECS_CACHED_MAX } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';

export class Specs {
  readonly #blobs: BlobStore;
  /** Least recently used first. */
  readonly #cached = new Map<string, Promise<TaskSpec>>();

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** Stores a spec that is too large for the log; undefined where it is not. */
  async store(spec: TaskSpec, signal: AbortSignal): Promise<BlobRef | undefined> {
    const bytes = toBinary(TaskSpecSchema, spec);
    return bytes.byteLength <= INLINE_BYTES_MAX ? undefined : await this.#blobs.put(bytes, signal);
  }

  /** The whole spec. Throws BLOB_MISSING. */
  async load({ taskId, spec }: TaskRecord, signal: AbortSignal): Promise<TaskSpec> {
    if (spec.case === 'inlineSpec') return spec.value;
    if (spec.case === undefined) throw new Error(`task ${taskId} has no spec in its record`);
    const { sha256 } = spec.value;
    const loading = this.#cached.get(sha256) ?? this.#fetch(spec.value, signal);
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
    return fromBinary(TaskSpecSchema, await this.#blobs.get(ref, signal));
  }
}
