// Exec: one command, its output as it comes, its result last.
import { realpathSync } from 'node:fs';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  type ExecRequest,
  ExecResponseSchema,
  type Mount,
  type RuntimeService,
} from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import {
  EXEC_DEFAULT_MS,
  EXEC_MOUNTS_MAX,
  EXEC_STDIN_BYTES_MAX,
  EXEC_TIMEOUT_MAX_MS,
} from '../../common/limits.ts';
import type { Runtime, RuntimePrewarmContext } from '../context.ts';
import type { Command, CommandResult, OutputSink } from '../domain/command.ts';
import { durationBetween, invalid, leaseOf } from '../domain/messages.ts';
import { type ResolvedMount, resolveMount } from '../domain/mounts.ts';
import { outputQueue } from '../domain/output-queue.ts';
import { fileOf, partsOf } from '../domain/paths.ts';
import { Limit } from '../host/limit.ts';
import { orBroken } from '../runtimes/broken.ts';

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Linux's limit for one argument or variable. */
const ARGUMENT_BYTES_MAX = 128 * 1024 - 1;

type Response = MessageInitShape<typeof ExecResponseSchema>;

export function exec(ctx: RuntimePrewarmContext): Pick<ServiceImpl<typeof RuntimeService>, 'exec'> {
  return {
    async *exec(request, { signal }) {
      const runtime = ctx.runtimes.get(request.runtimeId);
      const command = commandOf(ctx, request, runtime);
      if (request.lease !== undefined) runtime.lease(leaseOf('lease', request.lease));
      const queue = outputQueue<Response>();
      const sink: OutputSink = (stream, value) => queue.push({ event: { case: stream, value } });
      const files = request.files.map(fileOf);
      const work = async (): Promise<CommandResult> => {
        if (files.length > 0) await runtime.putFiles(files);
        return await runtime.exec(command, sink, signal);
      };
      const done = orBroken(work(), signal).finally(queue.close);
      done.catch(() => {});
      for await (const response of queue.items) yield create(ExecResponseSchema, response);
      const result = await done;
      yield create(ExecResponseSchema, {
        event: {
          case: 'result',
          value: {
            ...result,
            denied: { count: result.denied.count, targets: [...result.denied.targets] },
            peakMemoryBytes: BigInt(result.peakMemoryBytes),
            cpuMs: BigInt(result.cpuMs),
            wallMs: BigInt(result.wallMs),
            droppedOutputBytes: BigInt(result.droppedOutputBytes),
          },
        },
      });
    },
  };
}

function commandOf(ctx: RuntimePrewarmContext, request: ExecRequest, { plan, options }: Runtime): Command {
  const { argv, cwd, env, defaultEnv, timeout, stdin, mounts, proxyAccess } = request;
  if ((argv[0] ?? '') === '') throw invalid('argv', 'must name a program');
  for (const text of argv) checkArgument(text);
  checkVariables('env', env);
  checkVariables('default_env', defaultEnv);
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
    checkArgument(value);
  }
}

function checkArgument(text: string): void {
  if (text.includes('\0')) throw invalid('argv', 'must not hold NUL');
  if (Buffer.byteLength(text) > ARGUMENT_BYTES_MAX) {
    throw invalid(
      'argv',
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
