// Heartbeats to the scheduler: what this node has and can do; the answers say what is nobody's any more.
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { ErrorCode, NatsError } from 'nats';
import {
  type AttemptRef,
  AttemptRefSchema,
  type Heartbeat,
  type HeartbeatReply,
  HeartbeatReplySchema,
  HeartbeatSchema,
  type OfferSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { HEARTBEAT_MS, HEARTBEAT_REPLY_MS, NODE_LOST_MS } from '../../common/limits.ts';
import { subjects } from '../../common/nats/subjects.ts';
import type { Backend } from '../backends/backend.ts';
import type { RuntimePrewarmContext } from '../context.ts';
import { answered, mustFence, said, UNSEEN, unheard } from '../domain/fence.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import * as events from '../events.ts';

/** Images of a backend that a heartbeat lists. */
const IMAGES_TOLD_MAX = 1_000;

type OfferInit = MessageInitShape<typeof OfferSchema>;

/** Waits while another manager is this node; one that has ended is so for NODE_LOST_MS. Throws INVALID_CONFIG. */
export async function awaitPlace(ctx: RuntimePrewarmContext, signal: AbortSignal): Promise<void> {
  const begin = performance.now();
  while (!(await beat(ctx, performance.now()))) {
    if (performance.now() - begin > NODE_LOST_MS + HEARTBEAT_MS) throw taken(ctx);
    await sleep(HEARTBEAT_MS, signal);
    signal.throwIfAborted();
  }
}

/** Runs until the signal aborts. Throws INVALID_CONFIG where another manager is this node. */
export async function sendHeartbeats(ctx: RuntimePrewarmContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const begin = performance.now();
    // A node that stood still lets go before it says anything: an answer now would hide that it was given up meanwhile.
    check(ctx, begin);
    if (!(await beat(ctx, begin))) throw taken(ctx);
    check(ctx, performance.now());
    await sleep(Math.max(0, HEARTBEAT_MS - (performance.now() - begin)), signal);
  }
}

/** The node was stopped, and has no sandbox any more: its sessions need not wait until it counts as lost. */
export async function sayGoodbye(ctx: RuntimePrewarmContext): Promise<void> {
  await told(ctx, { ...heartbeatOf(ctx), leaving: true }).catch((error) =>
    events.heartbeatMissed(ctx.log, error),
  );
}

/** False: another manager is this node. */
async function beat(ctx: RuntimePrewarmContext, nowMs: number): Promise<boolean> {
  const { runtimes, log } = ctx;
  ctx.fence = said(ctx.fence, nowMs);
  try {
    const heartbeat = heartbeatOf(ctx);
    const { revoked, taken } = await told(ctx, heartbeat);
    if (taken) return false;
    runtimes.revoke(revoked);
    // What is revoked is gone by now.
    runtimes.confirm(heartbeat.attempts);
    // The scheduler counts from what it received.
    ctx.fence = answered(nowMs);
  } catch (error) {
    // NATS knows that no scheduler listened.
    const noResponders = error instanceof NatsError && error.code === ErrorCode.NoResponders;
    if (noResponders) ctx.fence = unheard(ctx.fence, nowMs);
    events.heartbeatMissed(log, error);
  }
  return true;
}

async function told({ bus, config }: RuntimePrewarmContext, heartbeat: Heartbeat): Promise<HeartbeatReply> {
  const bytes = toBinary(HeartbeatSchema, heartbeat);
  const subject = subjects.heartbeat(config.node.id);
  const reply = await bus.nc.request(subject, bytes, { timeout: HEARTBEAT_REPLY_MS });
  return fromBinary(HeartbeatReplySchema, reply.data);
}

const taken = ({ config }: RuntimePrewarmContext): PolarError =>
  new PolarError(
    'INVALID_CONFIG',
    `another machine is node ${config.node.id}: stop its services, or set another gateway.nodes[].id`,
  );

/** The scheduler gives the node up; the new boot id tells it that it was right. */
function check(ctx: RuntimePrewarmContext, nowMs: number): void {
  const { fence, runtimes, log } = ctx;
  if (!mustFence(fence, nowMs)) return;
  ctx.bootId = newId('boot');
  ctx.fence = UNSEEN;
  runtimes.removeSessions();
  events.fenced(log, nowMs - (fence.heardMs ?? nowMs), ctx.bootId);
}

function heartbeatOf({ config, bootId, dataId, backends, gpus, runtimes }: RuntimePrewarmContext): Heartbeat {
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
    offers: usable.map((backend) => offerOf(backend, gpus.shared)),
    dataId,
    proxyUrl: node.public_url,
    gpus: gpus.all.gpus.length,
    attempts: runtimes.owners().map((one) => refOf(one, node.id, bootId)),
  });
}

/** What is fetched where it is not here needs no list. */
function offerOf({ name, fetches, gpus, images }: Backend, isShared: boolean): OfferInit {
  const names = fetches ? [] : images();
  const others = fetches || names.length > IMAGES_TOLD_MAX;
  return {
    ...{ backend: name, images: names.slice(0, IMAGES_TOLD_MAX), others },
    ...{ gpusClaimed: gpus !== undefined && !isShared, gpusFromCreation: gpus === 'from_creation' },
  };
}

function refOf({ ref, owner }: AcquireOptions, nodeId: string, bootId: string): AttemptRef {
  const { sessionId, attempt } = owner;
  return ref ?? create(AttemptRefSchema, { sessionId, attempt, nodeId, bootId });
}
