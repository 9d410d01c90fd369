// Configuration of evaluators that grade in the sandbox of the run.
import { z } from 'zod';
import { argument } from './faults-of.ts';

/** All that a sandbox has that does not isolate. */
export const SESSION = '/polar/session';

/** Absolute, and as the sandbox has it: nothing in it leads up, and it is not the root. */
const sandboxPath = z
  .string()
  .regex(/^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/, 'must be an absolute path in the sandbox, without . and ..');
const REWARD_KEY_CHARS_MAX = 256;
const timeout = z.number().positive().max(86_400);

/** A Harbor task's own verifier. Names and defaults of the reference system; `tests_dir` is sent as EvaluatorSpec.files. */
export const harborConfig = z
  .strictObject({
    /** Default: bash with test.sh of tests_target. */
    test_command: argument.optional(),
    tests_target: sandboxPath.default('/tests'),
    verifier_dir: sandboxPath.default('/logs/verifier'),
    verifier_timeout: timeout.default(120),
  })
  .refine(({ tests_target: tests, verifier_dir: logs }) => !holds(tests, logs) && !holds(logs, tests), {
    path: ['verifier_dir'],
    message: 'must not lie in tests_target, nor that in it: both are cleared',
  });
export type HarborConfig = z.output<typeof harborConfig>;

/** A number in a JSON file of the sandbox. */
export const resultFileConfig = z.strictObject({
  result_file: sandboxPath,
  reward_key: z.string().min(1).max(REWARD_KEY_CHARS_MAX).default('reward'),
  /** Writes the file, which is deleted before. Absent: the run has written it. */
  command: argument.optional(),
  command_timeout: timeout.default(120),
});
export type ResultFileConfig = z.output<typeof resultFileConfig>;

/** Clearing its places, and reading what it wrote. */
export const CLEAR_SECONDS = 30;
/** Of a verifier that gives no reward: there, in a fresh sandbox, and there again. */
const RUNS_MAX = 3;
const verifierSeconds = (limit: number): number => RUNS_MAX * (CLEAR_SECONDS + limit);
export const harborSeconds = ({ verifier_timeout }: HarborConfig): number =>
  verifierSeconds(verifier_timeout);
export const resultFileSeconds = ({ command, command_timeout }: ResultFileConfig): number =>
  command === undefined ? 0 : verifierSeconds(command_timeout);

/** Whether `folder` is `path`, or above it. */
const holds = (folder: string, path: string): boolean => `${path}/`.startsWith(`${folder}/`);

/** Why a place cannot be cleared in a runtime; undefined: it can. */
export function clearingFault(path: string, isolates: boolean, workdir: string): string | undefined {
  if (holds(path, workdir)) return 'is written anew by the grading, and holds the workdir of the runtime';
  // Else a command sees the host: no other folder is the sandbox's own.
  const isOwn = isolates || (holds(SESSION, path) && path !== SESSION);
  return isOwn
    ? undefined
    : `must be below ${SESSION}: a runtime that does not isolate has nothing else of its own`;
}
