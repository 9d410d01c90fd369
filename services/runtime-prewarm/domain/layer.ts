// Whether a preparation is kept as a layer, and under what name.
import { toBinary } from '@bufbuild/protobuf';
import { PrepareStepSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { sha256, sha256Half } from '../../common/ids.ts';
import type { SandboxPlan } from './plan.ts';
import { SESSION_FOLDERS } from './skeleton.ts';

/** Uploads of fewer bytes cost less to write than an overlay does. */
const UPLOAD_BYTES_MIN = 1024 * 1024;

/**
 * What a command wrote is kept, and many uploaded bytes. Not where the task says that each sandbox is prepared anew, and
 * not where a disk of its own holds what the sandbox writes.
 */
export function isLayered({ steps, prepareEach, storageMb }: SandboxPlan): boolean {
  if (prepareEach || storageMb > 0) return false;
  let bytes = 0;
  for (const { step } of steps) {
    if (step.case === 'exec') return true;
    if (step.case === 'uploadFile') bytes += step.value.content.length;
    if (step.case === 'uploadDir') for (const { content } of step.value.files) bytes += content.length;
  }
  return bytes >= UPLOAD_BYTES_MIN;
}

/** Digest of all that a preparation depends on; `below` names what its image is now. */
export function layerKey({ steps, ...plan }: SandboxPlan, below: string): string {
  const env = Object.entries(plan.env).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = [
    ...steps.map((step) => sha256(toBinary(PrepareStepSchema, step))),
    JSON.stringify({ ...plan, env, below, folders: SESSION_FOLDERS }),
  ];
  return sha256Half(parts.join('\n'));
}
