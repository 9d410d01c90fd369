// A Harbor verifier run in one sandbox: what it says there, or why it says nothing.
import type { JsonObject } from '@bufbuild/protobuf';
import type { UploadFile } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError, type Reason } from '../../common/errors.ts';
import type { HarborConfig } from '../../common/specs/live-grading.ts';
import { tailOf } from '../domain/evaluation.ts';
import { type HarborReward, harborReward, type RewardFiles } from '../domain/harbor-reward.ts';
import { clear } from '../sandboxes/clear.ts';
import { leftMs, type OpenSandbox, type SandboxFile } from '../sandboxes/sandbox.ts';

const TAIL_CHARS = 8_000;
/** What Harbor keeps its verifiers' output in. Putting it there makes the folder, in each backend the commands' own. */
const STDOUT_FILE = 'test-stdout.txt';
const FILE_MODE = 0o644;
const EXECUTABLE = 0o111;
/** Of paths in the sandbox: whose doing it is, another sandbox tells. */
const OF_ITS_FILES: readonly Reason[] = ['UNSAFE_PATH', 'FILE_TOO_LARGE'];
/** Where the command runs; an agent may have removed that folder. */
const RUN = 'cd -- "$1" 2>/dev/null || cd /; exec /bin/sh -c "$2"';

export interface Verification {
  readonly config: HarborConfig;
  readonly tests: readonly UploadFile[];
  /** What its commands may write is capped, by a disk of its own. */
  readonly isCapped: boolean;
  readonly remainingMs: () => number;
}

export interface Verified {
  /** Undefined: there is none. */
  readonly reward: number | undefined;
  /** Why there is none. */
  readonly fault: string;
  readonly cause: 'late' | 'no room' | 'no reward';
  readonly told: JsonObject;
}

/** Throws EVALUATION_TIMEOUT where the budget and not verifier_timeout cut it, and what the sandbox throws. */
export async function verify(job: Verification, sandbox: OpenSandbox): Promise<Verified> {
  try {
    const fault = await placeTests(job, sandbox);
    return fault === undefined ? await run(job, sandbox) : fault;
  } catch (error) {
    if (error instanceof PolarError && OF_ITS_FILES.includes(error.reason))
      return none(`found no place: ${error.message}`);
    throw error;
  }
}

const none = (fault: string, told: JsonObject = {}, cause: Verified['cause'] = 'no reward'): Verified => ({
  reward: undefined,
  fault,
  cause,
  told,
});

/** With nothing that an agent has left in their places. */
async function placeTests(job: Verification, sandbox: OpenSandbox): Promise<Verified | undefined> {
  const { tests_target: target, verifier_dir: logs } = job.config;
  const fault = await clear(sandbox, [target, logs], job.remainingMs);
  const { json, text } = await rewardFiles(sandbox, logs);
  if (json !== undefined || text !== undefined) return none(fault ?? `could not clear ${logs}`);
  if (fault !== undefined) return none(fault);
  const tests = job.tests.map(({ target: path, content, mode }): SandboxFile => {
    const isScript = path.endsWith('.sh');
    return { target: `${target}/${path}`, content, mode: isScript ? (mode || FILE_MODE) | EXECUTABLE : mode };
  });
  try {
    await sandbox.putFiles([...tests, { target: `${logs}/${STDOUT_FILE}`, content: new Uint8Array() }]);
    return undefined;
  } catch (error) {
    // A disk that others write to, too, is the node's.
    if (!job.isCapped || !(error instanceof PolarError) || error.reason !== 'SANDBOX_FAILED') throw error;
    return none(`could not be put there: ${error.message}`, {}, 'no room');
  }
}

async function run({ config, remainingMs }: Verification, sandbox: OpenSandbox): Promise<Verified> {
  const { verifier_dir: logs, tests_target: target, verifier_timeout: limit } = config;
  const limitMs = Math.ceil(limit * 1000);
  const timeoutMs = Math.min(limitMs, leftMs(remainingMs));
  const command = config.test_command ?? `/bin/bash '${target.replaceAll("'", "'\\''")}/test.sh'`;
  const argv = ['/bin/sh', '-c', RUN, 'sh', sandbox.workdir, command];
  const { stdout, stderr, result } = await sandbox.exec(argv, timeoutMs);
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
  if (timedOut) return none(`did not end in verifier_timeout (${limit} s)`, told, 'late');
  return verifiedOf(harborReward(await rewardFiles(sandbox, logs)), told);
}

const verifiedOf = (found: HarborReward | string, told: JsonObject): Verified =>
  typeof found === 'string'
    ? none(found, told)
    : {
        reward: found.reward,
        fault: '',
        cause: 'no reward',
        told: { ...told, rewards: { ...found.rewards } },
      };

const rewardFiles = async (sandbox: OpenSandbox, logs: string): Promise<RewardFiles> => ({
  json: await sandbox.readFile(`${logs}/reward.json`),
  text: await sandbox.readFile(`${logs}/reward.txt`),
});
