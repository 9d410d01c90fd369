// A verifier of a task run in one sandbox: what it writes there, or why that is no reward.
import type { JsonObject } from '@bufbuild/protobuf';
import { PolarError, type Reason } from '../../common/errors.ts';
import { tailOf } from '../domain/evaluation.ts';
import type { WrittenReward } from '../domain/written-reward.ts';
import { clear } from '../sandboxes/clear.ts';
import { execInWorkdir, leftMs, type OpenSandbox, type SandboxFile } from '../sandboxes/sandbox.ts';

const TAIL_CHARS = 8_000;
/** Of paths in the sandbox: whose doing it is, another sandbox tells. */
const OF_ITS_FILES: readonly Reason[] = ['UNSAFE_PATH', 'FILE_TOO_LARGE'];

export interface Verification {
  /** Deleted first, with what is below them. */
  readonly clears: readonly string[];
  /** Put there then. */
  readonly files: readonly SandboxFile[];
  /** Of a shell. */
  readonly command: string;
  readonly timeoutSeconds: number;
  /** As the task has it. */
  readonly timeoutKey: string;
  /** Of files below `clears`: those that may hold the reward. */
  readonly written: readonly string[];
  /** By what these have; undefined: one is not there. Else why that is no reward. */
  readonly rewardOf: (contents: readonly (Uint8Array | undefined)[]) => WrittenReward | string;
  /** What commands may write is capped, by a disk of the sandbox's own. */
  readonly isCapped: boolean;
  readonly remainingMs: () => number;
}

export interface Verified {
  /** Undefined: there is none. */
  readonly reward: number | undefined;
  /** Why there is none. */
  readonly fault: string;
  /** It did not end. */
  readonly isLate: boolean;
  readonly told: JsonObject;
}

/** Throws EVALUATION_TIMEOUT where the budget and not its own limit cut it, and what the sandbox throws. */
export async function verify(job: Verification, sandbox: OpenSandbox): Promise<Verified> {
  try {
    return (await place(job, sandbox)) ?? (await run(job, sandbox));
  } catch (error) {
    if (!(error instanceof PolarError) || !OF_ITS_FILES.includes(error.reason)) throw error;
    return none(`found no place: ${error.message}`);
  }
}

const none = (fault: string, told: JsonObject = {}, isLate = false): Verified => ({
  ...{ reward: undefined, fault, isLate, told },
});

/** With nothing that an agent has left in its places. Undefined: it can run. */
async function place(job: Verification, sandbox: OpenSandbox): Promise<Verified | undefined> {
  const { clears, files, isCapped, remainingMs } = job;
  const fault = await clear(sandbox, clears, remainingMs);
  const left = await contentsOf(job, sandbox);
  const stays = left.some((content) => content !== undefined);
  if (fault !== undefined || stays) return none(fault ?? `could not clear ${clears.join(' and ')}`);
  if (files.length === 0) return undefined;
  try {
    await sandbox.putFiles(files);
    return undefined;
  } catch (error) {
    // A disk that others write to, too, is the node's.
    if (!isCapped || !(error instanceof PolarError) || error.reason !== 'SANDBOX_FAILED') throw error;
    return none(`could not be put there: ${error.message}`);
  }
}

async function run(job: Verification, sandbox: OpenSandbox): Promise<Verified> {
  const limitMs = Math.ceil(job.timeoutSeconds * 1000);
  const timeoutMs = Math.min(limitMs, leftMs(job.remainingMs));
  const { stdout, stderr, result } = await execInWorkdir(sandbox, job.command, timeoutMs);
  const { timedOut, exitCode, outOfMemory } = result;
  if (timedOut && timeoutMs < limitMs) {
    throw new PolarError('EVALUATION_TIMEOUT', 'too little of the evaluate budget was left for the verifier');
  }
  const output = Buffer.concat([stderr, Buffer.from(stderr.byteLength > 0 ? '\n' : ''), stdout]);
  const told = {
    verifier_timeout: timedOut,
    verifier_exit_code: exitCode,
    verifier_output_tail: tailOf(output, TAIL_CHARS),
    ...(outOfMemory && { verifier_out_of_memory: true }),
  };
  if (timedOut) return none(`did not end in ${job.timeoutKey} (${job.timeoutSeconds} s)`, told, true);
  const found = job.rewardOf(await contentsOf(job, sandbox));
  if (typeof found === 'string') return none(found, told);
  const { reward, rewards } = found;
  return { reward, fault: '', isLate: false, told: { ...told, rewards: { ...rewards } } };
}

async function contentsOf(
  { written }: Verification,
  sandbox: OpenSandbox,
): Promise<(Uint8Array | undefined)[]> {
  const contents: (Uint8Array | undefined)[] = [];
  for (const path of written) contents.push(await sandbox.readFile(path));
  return contents;
}
