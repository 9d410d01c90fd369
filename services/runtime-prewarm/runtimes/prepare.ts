// The steps of a preparation, in order.
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ExecStep, PrepareStep } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { PREPARE_TAIL_BYTES, SANDBOX_END_MS } from '../../common/limits.ts';
import { STEP_BACKOFF_MS_MAX } from '../../common/specs/runtime-spec.ts';
import { ARGUMENT_BYTES_MAX } from '../domain/command.ts';
import { deniedText } from '../domain/denials.ts';
import { filesOf } from '../domain/paths.ts';
import { Limit } from '../host/limit.ts';
import type { Runtime } from './runtime.ts';

/** Throws PREPARE_FAILED naming the step, PREPARE_TIMEOUT by the signal's reason, UNSAFE_PATH, SANDBOX_FAILED. */
export async function runPrepareSteps(
  runtime: Runtime,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  await runtime.makeFolder(runtime.plan.workdir);
  for (const [index, { step }] of runtime.plan.steps.entries()) {
    signal.throwIfAborted();
    const name = `prepare[${index}]`;
    if (step.case === 'exec') await runExecStep(runtime, name, step.value, timeoutMs, signal);
    else await upload(runtime, name, step);
  }
}

async function upload(runtime: Runtime, name: string, step: PrepareStep['step']): Promise<void> {
  const files = filesOf(step);
  if (step.case === 'uploadDir') await runtime.makeFolder(step.value.target);
  if (step.case === undefined) throw new PolarError('PREPARE_FAILED', `${name} says nothing to do`);
  await runtime.putFiles(files);
}

async function runExecStep(
  runtime: Runtime,
  name: string,
  { command, cwd, env, maxAttempts, retryBackoff }: ExecStep,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (Buffer.byteLength(command) > ARGUMENT_BYTES_MAX) {
    throw new PolarError(
      'PREPARE_FAILED',
      `${name}: a command has at most ${ARGUMENT_BYTES_MAX} bytes: upload what it writes, or a script`,
    );
  }
  let pauseMs = retryBackoff === undefined ? 0 : durationMs(retryBackoff);
  for (let attempt = 1; ; attempt++) {
    const tail = new Tail();
    const { exitCode, outOfMemory, denied } = await runtime.exec(
      {
        argv: ['sh', '-c', command],
        cwd: cwd || runtime.plan.workdir,
        env,
        stdin: new Uint8Array(),
        // The signal ends the preparation as a whole, and says why.
        limit: new Limit(timeoutMs + SANDBOX_END_MS),
        mounts: [],
        proxyAs: undefined,
        egress: runtime.plan.prepareEgress,
      },
      (_stream, bytes) => tail.add(bytes),
      signal,
    );
    signal.throwIfAborted();
    if (exitCode === 0) return;
    if (attempt >= Math.max(1, maxAttempts)) {
      const memory = outOfMemory ? ', out of memory' : '';
      throw new PolarError(
        'PREPARE_FAILED',
        `${name}: the command ended with exit code ${exitCode}${memory}${deniedText(denied)}: ${tail.text()}`,
      );
    }
    await sleep(pauseMs, signal);
    signal.throwIfAborted();
    pauseMs = Math.min(2 * pauseMs, STEP_BACKOFF_MS_MAX);
  }
}

/** The last PREPARE_TAIL_BYTES of an output. */
class Tail {
  #bytes = Buffer.alloc(0);

  add(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]).subarray(-PREPARE_TAIL_BYTES);
  }

  text(): string {
    return this.#bytes.toString().trim();
  }
}
