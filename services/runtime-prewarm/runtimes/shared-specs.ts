// One copy of what the sandboxes of a task are asked for with: each has its own message, uploads and all, and keeps it.
import { toBinary } from '@bufbuild/protobuf';
import { type RuntimeSpec, RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { sha256 } from '../../common/ids.ts';
import { filesOf, stepsOf } from '../../common/specs/runtime-spec.ts';

/** Uploaded bytes from which on they are shared: fewer cost less than their digest. */
const SHARED_BYTES_MIN = 64 * 1024;

export class SharedSpecs {
  /** By digest. */
  readonly #known = new Map<string, WeakRef<RuntimeSpec>>();
  readonly #unused = new FinalizationRegistry<string>((digest) => {
    if (this.#known.get(digest)?.deref() === undefined) this.#known.delete(digest);
  });

  /** An equal one that somebody has already, else this one. Nobody changes it. */
  of(spec: RuntimeSpec): RuntimeSpec {
    if (uploadedBytes(spec) < SHARED_BYTES_MIN) return spec;
    const digest = sha256(toBinary(RuntimeSpecSchema, spec));
    const known = this.#known.get(digest)?.deref();
    if (known !== undefined) return known;
    this.#known.set(digest, new WeakRef(spec));
    this.#unused.register(spec, digest);
    return spec;
  }
}

function uploadedBytes(spec: RuntimeSpec): number {
  let bytes = 0;
  for (const step of stepsOf(spec)) for (const { content } of filesOf(step)) bytes += content.byteLength;
  return bytes;
}
