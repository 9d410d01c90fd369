// Rewards by a command of the task: it looks at the session's calls, and prints a reward for it or for some of them.
import { PolarError } from '../../common/errors.ts';
import type { EvaluatorContext } from '../context.ts';
import { tailOf } from '../domain/evaluation.ts';
import { leftMs, type Sandbox } from '../sandboxes/sandbox.ts';
import { callsOf, recordsOf } from './call-records.ts';
import type { Evaluation } from './evaluator.ts';
import { invalid, type PrintedRewards, rewardsIn } from './printed-rewards.ts';

/** Where the command finds the calls. */
const CALLS_FILE = '/polar/session/calls.jsonl';
/** The tests ran the agent's code, as the same user: it may have left anything there, and closed it. */
const MAKE_ROOM = [
  'session=$(dirname "$1")',
  'for folder in "$(dirname "$session")" "$session"; do',
  '[ -d "$folder" ] || rm -f -- "$folder"',
  'chmod u+rwx "$folder"',
  'done',
  '[ -L "$1" ] || chmod -R u+rwx "$1"',
  'rm -rf -- "$1"',
].join('\n');
/** What the command may print; above: TRACE_REWARDS_INVALID. Rewards of REWARDED_CALLS_MAX calls are a tenth of it. */
const PRINTED_BYTES_MAX = 1024 * 1024;
const TAIL_CHARS = 500;
/** In a new folder: programs that look where they are for what they load find nothing that an agent has left there. */
const IN_NEW_FOLDER =
  'folder=$(mktemp -d) && cd -- "$folder" || exit; REPO_DIR=$1; export REPO_DIR; exec sh -c "$2"';

export interface RewardsCommand {
  readonly command: string;
  readonly timeoutSeconds: number;
  /** Its REPO_DIR. */
  readonly repoDir: string;
}

/** Throws TRACE_REWARDS_INVALID where the command gives none that are right, FILE_TOO_LARGE, RECORDS_MISSING. */
export async function traceRewards(
  ctx: EvaluatorContext,
  evaluation: Evaluation,
  sandbox: Sandbox,
  { command, timeoutSeconds, repoDir }: RewardsCommand,
  signal: AbortSignal,
): Promise<PrintedRewards> {
  const records = await recordsOf(ctx, evaluation, signal);
  const lines = callsOf(records, 'rewards_command').map((line) => `${line}\n`);
  await sandbox.exec(['sh', '-c', MAKE_ROOM, 'sh', CALLS_FILE], leftMs(evaluation.remainingMs));
  await sandbox.putFile(CALLS_FILE, Buffer.from(lines.join('')));
  const limitMs = Math.ceil(timeoutSeconds * 1000);
  const timeoutMs = Math.min(limitMs, leftMs(evaluation.remainingMs));
  const argv = ['sh', '-c', IN_NEW_FOLDER, 'sh', repoDir, command];
  const { stdout, stderr, result } = await sandbox.exec(argv, timeoutMs);
  if (result.timedOut) {
    if (timeoutMs < limitMs) throw new PolarError('EVALUATION_TIMEOUT', 'the evaluate budget was spent');
    throw invalid(`did not end in rewards_timeout (${timeoutSeconds} s)`);
  }
  if (result.exitCode !== 0) {
    throw invalid(`failed with exit code ${result.exitCode}: ${tailOf(stderr, TAIL_CHARS).trim()}`);
  }
  if (result.droppedOutputBytes > 0n || stdout.byteLength > PRINTED_BYTES_MAX) {
    throw invalid(`printed more than is taken (${PRINTED_BYTES_MAX} bytes)`);
  }
  return rewardsIn(Buffer.from(stdout).toString('utf8'), new Set(records.map(({ callId }) => callId)));
}
