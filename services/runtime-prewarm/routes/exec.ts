// Exec: one command, its output as it comes, its result last.
import { realpathSync } from 'node:fs';
import { create, toBinary } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  type ExecRequest,
  ExecRequestSchema,
  type ExecResponse,
  ExecResponseSchema,
  type Mount,
  RuntimeService,
} from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { ByteStream } from '../../common/byte-stream.ts';
import {
  EXEC_DEFAULT_MS,
  EXEC_MOUNTS_MAX,
  EXEC_STDIN_BYTES_MAX,
  EXEC_TIMEOUT_MAX_MS,
  RPC_BODY_BYTES_MAX,
} from '../../common/limits.ts';
import { readRequest } from '../../common/request-faults.ts';
import type { Runtime, RuntimePrewarmContext } from '../context.ts';
import {
  ARGUMENT_BYTES_MAX,
  ARGUMENTS_BYTES_MAX,
  ARGUMENTS_MAX,
  type Command,
  type CommandResult,
  VARIABLES_MAX,
} from '../domain/command.ts';
import { durationBetween, invalid, leaseOf } from '../domain/messages.ts';
import { type ResolvedMount, resolveMount } from '../domain/mounts.ts';
import { outputQueue } from '../domain/output-queue.ts';
import { fileOf, partsOf } from '../domain/paths.ts';
import { Limit } from '../host/limit.ts';
import { orBroken } from '../runtimes/broken.ts';

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** For callers of every other kind. */
export const exec = (ctx: RuntimePrewarmContext): Pick<ServiceImpl<typeof RuntimeService>, 'exec'> => ({
  exec: (request, { signal }) => eventsOf(ctx, request, signal),
});

/** The same for callers by gRPC, or by Connect in binary form, as services are: a third of the CPU. */
export const execBytes = (ctx: RuntimePrewarmContext): ByteStream => ({
  path: `/${RuntimeService.typeName}/${RuntimeService.method.exec.name}`,
  requestBytesMax: RPC_BODY_BYTES_MAX,
  async *open(bytes, signal) {
    const request = readRequest(ExecRequestSchema, bytes);
    for await (const event of eventsOf(ctx, request, signal)) {
      yield { parts: [toBinary(ExecResponseSchema, event)] };
    }
  },
});

async function* eventsOf(
  ctx: RuntimePrewarmContext,
  request: ExecRequest,
  signal: AbortSignal,
): AsyncGenerator<ExecResponse, void> {
  const runtime = ctx.runtimes.get(request.runtimeId);
  const command = commandOf(ctx, request, runtime);
  if (request.lease !== undefined) runtime.lease(leaseOf('lease', request.lease));
  const queue = outputQueue();
  const files = request.files.map(fileOf);
  const done = orBroken(runtime.exec(command, queue.push, signal, files), signal).finally(queue.close);
  done.catch(() => {});
  for await (const { stream, bytes } of queue.items) {
    yield create(ExecResponseSchema, { event: { case: stream, value: bytes } });
  }
  yield create(ExecResponseSchema, { event: { case: 'result', value: resultOf(await done) } });
}

function resultOf({ denied, nodeOutOfMemory: _, ...result }: CommandResult) {
  return {
    ...result,
    denied: { count: denied.count, targets: [...denied.targets] },
    peakMemoryBytes: BigInt(result.peakMemoryBytes),
    cpuMs: BigInt(result.cpuMs),
    wallMs: BigInt(result.wallMs),
    droppedOutputBytes: BigInt(result.droppedOutputBytes),
    droppedStderrBytes: BigInt(result.droppedStderrBytes ?? 0),
  };
}

function commandOf(ctx: RuntimePrewarmContext, request: ExecRequest, { plan, options }: Runtime): Command {
  const { argv, cwd, env, defaultEnv, timeout, stdin, mounts, proxyAccess } = request;
  if ((argv[0] ?? '') === '') throw invalid('argv', 'must name a program');
  if (argv.length > ARGUMENTS_MAX) throw invalid('argv', `must be at most ${ARGUMENTS_MAX} arguments`);
  for (const text of argv) checkArgument('argv', text);
  if (argv.reduce((sum, text) => sum + Buffer.byteLength(text), 0) > ARGUMENTS_BYTES_MAX) {
    throw invalid('argv', `must be at most ${ARGUMENTS_BYTES_MAX} bytes together`);
  }
  checkVariables('env', env);
  checkVariables('default_env', defaultEnv);
  if (Object.keys({ ...defaultEnv, ...plan.env, ...env }).length > VARIABLES_MAX) {
    throw invalid('env', `and the sandbox's own must be at most ${VARIABLES_MAX} variables together`);
  }
  if (stdin.byteLength > EXEC_STDIN_BYTES_MAX) {
    throw invalid('stdin', `must be at most ${EXEC_STDIN_BYTES_MAX} bytes`);
  }
  if (mounts.length > EXEC_MOUNTS_MAX) throw invalid('mounts', `must be at most ${EXEC_MOUNTS_MAX}`);
  return {
    argv,
    cwd: cwd === '' ? plan.workdir : `/${partsOf(cwd).join('/')}`,
    env,
    defaultEnv,
    stdin,
    limit: new Limit(durationBetween('timeout', timeout, EXEC_DEFAULT_MS, 1, EXEC_TIMEOUT_MAX_MS)),
    mounts: mounts.map((mount) => mountOf(ctx, mount)),
    proxyAs: proxyAccess ? options.owner.sessionId : undefined,
    egress: proxyAccess ? plan.egress : [],
  };
}

function checkVariables(field: string, env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!ENV_NAME.test(name)) throw invalid(`${field}.${name}`, 'is no variable name');
    checkArgument(`${field}.${name}`, value);
  }
}

function checkArgument(field: string, text: string): void {
  if (text.includes('\0')) throw invalid(field, 'must not hold NUL');
  if (Buffer.byteLength(text) > ARGUMENT_BYTES_MAX) {
    throw invalid(
      field,
      `has a text above ${ARGUMENT_BYTES_MAX} bytes: give it as a file or on standard input`,
    );
  }
}

function mountOf(ctx: RuntimePrewarmContext, { source, target }: Mount): ResolvedMount {
  let real: string;
  try {
    real = realpathSync(source);
  } catch {
    throw invalid('mounts', `name ${source}, which is not there`);
  }
  return resolveMount(source, real, target, ctx.config.mountRoots);
}
