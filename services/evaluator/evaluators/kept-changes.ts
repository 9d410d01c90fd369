// What was read of a session's changes is kept, so that they can be graded again when the session's sandbox is gone.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type StoredChanges, StoredChangesSchema } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { asPolarError } from '../../common/errors.ts';
import type { ExecOutput } from '../../common/exec.ts';
import type { PatchOptions } from '../../common/specs/grading-options.ts';
import type { EvaluatorContext } from '../context.ts';
import { tailOf } from '../domain/evaluation.ts';
import { changesNotKept } from '../events.ts';
import { lacksBase, leftOutOf } from '../sandboxes/repository.ts';
import type { Evaluation } from './evaluator.ts';
import { type Grade, type PatchJob, TAIL_CHARS } from './grade-patch.ts';

/** Of an output, or of the grade of changes that are never read. */
export function changesOf(job: PatchJob, read: ExecOutput | Grade): StoredChanges {
  const { ref } = job.evaluation;
  const { repo_dir: repoDir, patch_command: command = '' } = job.config;
  const about = { sessionId: ref.sessionId, attempt: ref.attempt, repoDir, patchCommand: command };
  const found = 'reward' in read ? { endless: true } : partsOf(read, command === '');
  return create(StoredChangesSchema, { ...about, ...found });
}

function partsOf(output: ExecOutput, isOfRepository: boolean): MessageInitShape<typeof StoredChangesSchema> {
  const { stdout, stderr, result } = output;
  const { exitCode, droppedOutputBytes } = result;
  if (exitCode !== 0) return { exitCode, errorTail: tailOf(stderr, TAIL_CHARS) };
  const found = isOfRepository ? { lacksBase: lacksBase(output), leftOutFiles: leftOutOf(output) } : {};
  return droppedOutputBytes > 0n ? { ...found, tooLarge: true } : { ...found, patch: stdout };
}

/** A reward does not depend on it: where they cannot be kept, the session is graded all the same, and once. */
export async function keepChanges(
  { blobs, log }: EvaluatorContext,
  { ref, kept }: Evaluation,
  changes: StoredChanges,
  signal: AbortSignal,
): Promise<void> {
  try {
    kept.changes = await blobs.put(toBinary(StoredChangesSchema, changes), signal);
  } catch (error) {
    signal.throwIfAborted();
    changesNotKept(log, ref, asPolarError(error));
  }
}

/** A patch is about one folder, and was read in one way. Throws INVALID_TASK where the configuration asks for others. */
export function checkSame(changes: StoredChanges, config: PatchOptions): void {
  const { repo_dir: repoDir, patch_command: command = '' } = config;
  const faults = [
    ['repo_dir', repoDir, changes.repoDir],
    ['patch_command', command, changes.patchCommand],
  ].flatMap(([name, asked, stored]) => {
    const was = stored === '' ? 'without one' : `with ${stored}`;
    const description = `the changes of ${changes.sessionId} were read ${was}, which is over: they cannot be read again`;
    return asked === stored ? [] : [{ field: `evaluator.config.${name}`, description }];
  });
  if (faults.length > 0) throw faulty('INVALID_TASK', 'the evaluator', faults);
}
