// Business events of runtime-prewarm: one function each, one log line each; and what is counted of them.
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, type PolarError } from '../common/errors.ts';
import type { Logger } from '../common/logger.ts';
import type { BackendState } from './backends/backend.ts';
import type { SweepEvents } from './backends/image-sweep.ts';
import type { AcquireOptions } from './domain/lease.ts';
import type { Host } from './host/host.ts';
import * as metrics from './metrics.ts';
import type { Runtime } from './runtimes/runtime.ts';

export type RemovalCause = 'released' | 'expired' | 'revoked' | 'fenced' | 'stopped' | 'failed';

export function hostOpened(log: Logger, { containment, isRoot }: Host): void {
  log.info(
    { containment: containment.kind, limits_enforced: containment.enforced, host_root: isRoot },
    'sandboxes can be made',
  );
}

export function backendProbed(log: Logger, state: BackendState): void {
  if ('unavailable' in state) {
    const { reason, message } = state.unavailable;
    log.warn({ backend: state.name, reason, why: message }, 'runtime backend unavailable');
  } else {
    const layers = state.backend.layers !== undefined;
    log.info({ backend: state.name, isolates: state.isolates, layers }, 'runtime backend ready');
  }
}

export function runtimePrepared(log: Logger, runtime: Runtime): void {
  log.info({ ...bindings(runtime), isolated: runtime.isolated }, 'runtime prepared');
  const { plan, options } = runtime;
  metrics.sandboxesPrepared.inc({ backend: plan.backend, purpose: options.owner.purpose });
}

export function runtimeRemoved(log: Logger, runtime: Runtime, cause: RemovalCause): void {
  log.info({ ...bindings(runtime), cause }, 'runtime removed');
  metrics.sandboxesRemoved.inc({ backend: runtime.plan.backend, cause });
}

export function removalFailed(log: Logger, runtime: Runtime, error: unknown): void {
  log.error({ ...bindings(runtime), err: error }, 'runtime left behind: it is cleared later');
}

export function layerMade(log: Logger, layer: string, bytes: number, ms: number): void {
  log.info({ layer, bytes, duration_ms: Math.round(ms) }, 'layer made: its like are cloned from now on');
  metrics.layersMade.inc();
}

export function leftStuck(log: Logger, what: 'image' | 'container', id: string, error: unknown): void {
  log.warn({ [what]: id, err: error }, 'an engine cannot delete what nobody has, each look tries again');
}

export const sweepEvents = (log: Logger): SweepEvents => ({
  removed(backend, image, unusedMs) {
    const unused_s = Math.round(unusedMs / 1_000);
    log.info(
      { backend, image, unused_s },
      'image removed for room: it is fetched or unpacked again when it is needed',
    );
    metrics.imagesRemoved.inc({ backend });
  },
  short(backend, folder) {
    log.warn({ backend, folder }, 'the disk of images is above images_high_percent, and none of them may go');
  },
});

export function prepareFailed(log: Logger, ref: AttemptRef, error: PolarError): void {
  const { reason, message } = error;
  log.warn({ session_id: ref.sessionId, attempt: ref.attempt, reason, why: message }, 'prepare failed');
  metrics.preparationsFailed.inc({ reason });
}

export function notMadeAhead(
  log: Logger,
  { sessionId, attempt }: AcquireOptions['owner'],
  error: PolarError,
): void {
  const { reason, message } = error;
  const about = { session_id: sessionId, attempt, reason, why: message };
  log.info(about, 'no sandbox was made ahead of the evaluation');
}

export function workDropped(log: Logger, ref: AttemptRef | undefined, why: string): void {
  log.info({ session_id: ref?.sessionId, attempt: ref?.attempt, why }, 'work dropped');
}

export function heartbeatMissed(log: Logger, error: unknown): void {
  log.debug({ why: asPolarError(error).message }, 'heartbeat not answered');
  metrics.heartbeatsMissed.inc();
}

export function fenced(log: Logger, silentMs: number, bootId: string): void {
  log.error(
    { silent_ms: Math.round(silentMs), boot_id: bootId },
    'no scheduler answers: sandboxes of sessions removed, the node counts as started anew',
  );
  metrics.fenced.inc();
}

function bindings({ id, plan, options }: Runtime): object {
  const { sessionId, attempt, purpose } = options.owner;
  return { runtime_id: id, backend: plan.backend, session_id: sessionId, attempt, purpose };
}
