// Heartbeats to the scheduler: what this node has and can do; the answers say what is nobody's any more.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type AttemptRef,
  AttemptRefSchema,
  type Heartbeat,
  HeartbeatReplySchema,
  HeartbeatSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { newId } from '../../common/ids.ts';
import { HEARTBEAT_MS, HEARTBEAT_REPLY_MS } from '../../common/limits.ts';
import { subjects } from '../../common/nats/subjects.ts';
import type { RuntimePrewarmContext } from '../context.ts';
import { answered, type FenceState, mustFence, UNSEEN } from '../domain/fence.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import * as events from '../events.ts';

/** Runs until the signal aborts. */
export async function sendHeartbeats(ctx: RuntimePrewarmContext, signal: AbortSignal): Promise<void> {
  let fence = UNSEEN;
  while (!signal.aborted) {
    const begin = performance.now();
    // A node that stood still lets go before it says anything: an answer now would hide that it was given up meanwhile.
    fence = checked(ctx, fence, begin);
    fence = checked(ctx, await beat(ctx, fence), performance.now());
    await sleep(Math.max(0, HEARTBEAT_MS - (performance.now() - begin)), signal);
  }
}

async function beat(ctx: RuntimePrewarmContext, fence: FenceState): Promise<FenceState> {
  const { bus, config, runtimes, log } = ctx;
  const sent = performance.now();
  try {
    const bytes = toBinary(HeartbeatSchema, heartbeatOf(ctx));
    const subject = subjects.heartbeat(config.node.id);
    const reply = await bus.nc.request(subject, bytes, { timeout: HEARTBEAT_REPLY_MS });
    runtimes.revoke(fromBinary(HeartbeatReplySchema, reply.data).revoked);
    // The scheduler counts from what it received.
    return answered(sent);
  } catch (error) {
    events.heartbeatMissed(log, error);
    return fence;
  }
}

const checked = (ctx: RuntimePrewarmContext, fence: FenceState, nowMs: number): FenceState =>
  mustFence(fence, nowMs) ? letGo(ctx, fence) : fence;

/** The scheduler gives the node up; the new boot id tells it that it was right. */
function letGo(ctx: RuntimePrewarmContext, { answeredMs = 0 }: FenceState): FenceState {
  ctx.bootId = newId('boot');
  ctx.runtimes.removeSessions();
  events.fenced(ctx.log, performance.now() - answeredMs, ctx.bootId);
  return UNSEEN;
}

export function heartbeatOf({ config, bootId, backends, runtimes }: RuntimePrewarmContext): Heartbeat {
  const { node } = config;
  const usable = backends.states.flatMap((state) => ('backend' in state ? [state.backend] : []));
  return create(HeartbeatSchema, {
    nodeId: node.id,
    bootId,
    backends: usable.map(({ name }) => name),
    defaultBackend: backends.defaults.runtime?.backend || backends.defaults.backend || '',
    prepareSlots: node.max_init_workers,
    runSlots: node.max_run_workers,
    evaluateSlots: node.max_postrun_workers,
    readySlots: node.max_ready,
    images: usable.flatMap((backend) => backend.images()),
    attempts: runtimes.owners().map((one) => refOf(one, node.id, bootId)),
  });
}

function refOf({ ref, owner }: AcquireOptions, nodeId: string, bootId: string): AttemptRef {
  const { sessionId, attempt } = owner;
  return ref ?? create(AttemptRefSchema, { sessionId, attempt, nodeId, bootId });
}
