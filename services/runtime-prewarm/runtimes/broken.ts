// What a sandbox stumbled over, as what it means to who uses it.
import { asPolarError, PolarError } from '../../common/errors.ts';

/**
 * An error that nobody gave a reason (of the file system, of a container engine that is gone) is SANDBOX_FAILED: another
 * sandbox may do better. Where the caller has left, what its signal says stays as it is.
 */
export async function orBroken<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof PolarError || signal?.aborted) throw error;
    throw new PolarError('SANDBOX_FAILED', `the sandbox broke: ${asPolarError(error).message}`, {
      cause: error,
    });
  }
}
