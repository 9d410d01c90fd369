// One run of a harness in its leased sandbox, from the credential to the count of its model calls.
import { create } from '@bufbuild/protobuf';
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import type { DeniedConnections } from '../../../gen/ts/polar/common/v1/network_pb.js';
import { CallRangeSchema, type Ran, RanSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { ExecResult } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { PolarError } from '../../common/errors.ts';
import type { Adapter } from '../adapters/adapter.ts';
import { adapterFor } from '../adapters/index.ts';
import type { HarnessExecutorContext } from '../context.ts';
import { infrastructureCause } from '../domain/exit.ts';
import * as events from '../events.ts';
import { grantCapability } from './capability.ts';
import { closeSession } from './close-session.ts';
import { installFirst } from './install-first.ts';
import { keepArtifacts } from './keep-artifacts.ts';
import { launchOf } from './launch.ts';
import type { Run } from './run.ts';
import { execHarness, leaseRuntime } from './sandbox.ts';
import { sandboxPython } from './sandbox-python.ts';

export type RunEnd = ({ readonly ran: Ran } | { readonly failed: Failure }) & {
  /** What the harness was not let connect to. */
  readonly denied?: DeniedConnections | undefined;
  /** What the run waited for its harness. */
  readonly installMs?: number;
};

/**
 * Run the harness of a session. A harness that fails by itself or uses up its time is a result; what infrastructure did
 * to it is a failure. Throws a PolarError with the reason where the run could not be done.
 */
export async function runHarness(
  ctx: HarnessExecutorContext,
  run: Run,
  signal: AbortSignal,
): Promise<RunEnd> {
  const { ref, work } = run;
  const { config, log } = ctx;
  const startedAt = performance.now();
  const adapter = await adapterFor(work.harness, config.node.plugins_dir);
  const python = await sandboxPython(ctx.runtimes, work.runtimeId, adapter, signal);
  const installed = await installFirst(ctx, run, { ...adapter, python: python?.version }, signal);
  const installMs = performance.now() - startedAt;
  const capability = await grantCapability(ctx.bus, ref, work, signal);
  // While a mesh is upgraded, a scheduler or runtime-prewarm of the version before may not tell where the proxy is.
  const runtime = work.proxyUrl === '' ? await leaseRuntime(ctx, work, signal) : undefined;
  const launch = launchOf(adapter, {
    ...{ ref, work, runtime, capability, installed, nodeDir: config.nodeDir },
    python: python?.path ?? '',
  });
  events.runStarted(log, ref, adapter.name);
  const result = await execHarness(ctx, run, launch, signal);
  const onRetry = (error: PolarError): void => events.closeRetried(log, ref, error);
  const { lastFailure, ...range } = await closeSession(ctx.proxy, ref, onRetry, signal);
  await keepArtifacts(ctx, run, adapter, signal);
  return { ...endOf(adapter, result, lastFailure, range), denied: result.denied, installMs };
}

function endOf(
  adapter: Adapter,
  result: ExecResult,
  lastFailure: Failure | undefined,
  { calls, firstSeq, lastSeq }: { calls: number; firstSeq: bigint; lastSeq: bigint },
): RunEnd {
  const exit = adapter.readExit(result);
  const cause = infrastructureCause(exit, result, lastFailure);
  if (cause !== undefined) return { failed: cause };
  const range = create(CallRangeSchema, { calls, firstSeq, lastSeq });
  return { ran: create(RanSchema, { ...exit, exitCode: result.exitCode, calls: range }) };
}
