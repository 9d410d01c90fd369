// What an agent has changed, read from its sandbox. Where that fails or does not end, a fresh sandbox tells whose doing it is.
import { PolarError } from '../../common/errors.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { tailOf } from '../domain/evaluation.ts';
import { inTime } from '../sandboxes/repository.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import { type Grade, limitMs, type PatchJob, zero } from './grade-patch.ts';

/** Of what a command says that works nowhere. */
const ERROR_TAIL_CHARS = 500;
/** Of apply_timeout: where reading takes no more of it without the agent's changes, these are what takes the time. */
const QUICK_SHARE = 0.25;

export interface Changes {
  /** As a task is told of it. */
  readonly what: string;
  readonly read: (sandbox: Sandbox, timeoutMs: number) => Promise<ExecOutput>;
  /** The same, where it was killed before. */
  readonly readAgain: (sandbox: Sandbox, timeoutMs: number) => Promise<ExecOutput>;
  /** What is read then is whole. */
  readonly isWholeAgain: boolean;
}

type InFresh = (use: (fresh: Sandbox) => Promise<void>) => Promise<void>;

/**
 * What was read, or the grade of changes that take all of apply_timeout, and again where a fresh sandbox has shown that
 * neither the machine nor the task is slow. Throws INVALID_TASK where it fails in that, too, EVALUATION_TIMEOUT.
 */
export async function readChanges(
  job: PatchJob,
  changes: Changes,
  live: Sandbox,
  inFresh: InFresh,
): Promise<ExecOutput | Grade> {
  const { read, readAgain, isWholeAgain } = changes;
  let found = await readIn(job, live, read);
  if (found.hadItsTime) {
    await inFresh(async (fresh) => checkQuick(job, changes, await readIn(job, fresh, read)));
    const again = await readIn(job, live, readAgain);
    if (again.hadItsTime) return endless(job);
    if (isWholeAgain) found = again;
  }
  const output = ended(found);
  if (hasFailed(output)) {
    await inFresh(async (fresh) => checkWorks(changes, ended(await readIn(job, fresh, read))));
  }
  return output;
}

const hasFailed = ({ result }: ExecOutput): boolean => result.exitCode !== 0;

interface Read {
  readonly output: ExecOutput;
  readonly tookMs: number;
  /** It did not end in apply_timeout; else it has ended, or the budget had less left for it. */
  readonly hadItsTime: boolean;
}

async function readIn(job: PatchJob, sandbox: Sandbox, read: Changes['read']): Promise<Read> {
  const { apply_timeout } = job.config;
  const timeoutMs = limitMs(job, apply_timeout);
  const startedAt = performance.now();
  const output = await read(sandbox, timeoutMs);
  const hadItsTime = output.result.timedOut && timeoutMs >= apply_timeout * 1000;
  return { output, tookMs: performance.now() - startedAt, hadItsTime };
}

const ended = ({ output }: Read): ExecOutput => inTime(output, 'the changes were not read');

/** Throws EVALUATION_TIMEOUT where it is not. */
function checkQuick({ config }: PatchJob, changes: Changes, fresh: Read): void {
  checkWorks(changes, ended(fresh));
  if (fresh.tookMs <= config.apply_timeout * 1000 * QUICK_SHARE) return;
  const message = `the changes were not read within apply_timeout, of which a sandbox without them takes ${Math.round(fresh.tookMs)} ms`;
  throw new PolarError('EVALUATION_TIMEOUT', message);
}

/** Where it fails in a fresh sandbox, too, it is not the agent who has broken it. Throws INVALID_TASK. */
function checkWorks({ what }: Changes, fresh: ExecOutput): void {
  if (!hasFailed(fresh)) return;
  const tail = tailOf(fresh.stderr, ERROR_TAIL_CHARS).trim();
  const how = `fails before any change, with exit code ${fresh.result.exitCode}: ${tail}`;
  throw new PolarError('INVALID_TASK', `evaluator.config.${what} ${how}`);
}

export const endless = ({ config }: PatchJob): Grade =>
  zero({
    patch_timeout: true,
    patch_error_tail: `the changes were not read within apply_timeout (${config.apply_timeout} s), twice, and a sandbox without them is read at once`,
  });
