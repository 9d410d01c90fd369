// Why a session does not go on, from what the scheduler knows at this moment.
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import {
  type Waiting,
  WaitingSchema,
  WaitReason,
} from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { isExternal } from '../../common/specs/external.ts';
import { isInstalling } from './budgets.ts';
import type { Engine, Engines } from './engines.ts';
import { isFailing } from './failing.ts';
import { isKeptBack, keptFor } from './gpu-turns.ts';
import { freeGpusText, hasFreeGpus } from './gpus.ts';
import { canPrepare, canRun, type NodeState, type Nodes, offers } from './nodes.ts';
import { placesFor } from './placement.ts';
import type { DispatchQueue, QueueItem } from './queue.ts';
import { harnessOf, SessionState, sessionOf } from './session.ts';
import { isAtCap } from './shares.ts';
import { needOf, partsOfNeed } from './task.ts';

export interface Surroundings {
  readonly nodes: Nodes;
  readonly queue: DispatchQueue;
  readonly engines: Engines;
  readonly isDraining: (nodeId: string) => boolean;
  /** Too much waits for the state log. */
  readonly logFull: boolean;
  /** Model calls are held. */
  readonly paused: boolean;
  readonly nowMs: number;
}

/** How many go before one that waits for its turn. */
type Ahead = (item: QueueItem) => number;

/** Undefined where the session is at work or has ended. */
export const waitingOf = (record: SessionRecord, spec: TaskSpec, around: Surroundings): Waiting | undefined =>
  waitingsOf([record], spec, around)[sessionOf(record).sessionId];

/** By session id, of those sessions of a task that wait. */
export function waitingsOf(
  records: readonly SessionRecord[],
  spec: TaskSpec,
  around: Surroundings,
): Record<string, Waiting> {
  const { queue } = around;
  const items = records.flatMap((record) => queue.get(sessionOf(record).sessionId) ?? []);
  let counts: ReadonlyMap<string, number> | undefined;
  // At most one look at all that wait, and that only where a turn is waited for.
  const ahead: Ahead = ({ sessionId }) => {
    counts ??= queue.ahead(items);
    return counts.get(sessionId) ?? 0;
  };
  return Object.fromEntries(
    records.flatMap((record) => {
      const waiting = waitingIn(record, spec, around, ahead);
      return waiting === undefined ? [] : [[sessionOf(record).sessionId, waiting]];
    }),
  );
}

function waitingIn(
  record: SessionRecord,
  spec: TaskSpec,
  around: Surroundings,
  ahead: Ahead,
): Waiting | undefined {
  const { state, nodeId, sessionId } = sessionOf(record);
  switch (state) {
    case SessionState.QUEUED: {
      if (isExternal(spec)) return told(WaitReason.OPEN, 'its harness runs elsewhere: it waits to be opened');
      const item = around.queue.get(sessionId);
      return item === undefined ? undefined : waitingInQueue(item, spec, around, ahead);
    }
    case SessionState.READY:
      return waitingToRun(sessionOf(record), needOf(spec), around);
    case SessionState.RUNNING:
      if (isInstalling(record)) return waitingForHarness(nodeId, spec);
      return around.paused
        ? told(WaitReason.POLICY_PAUSED, 'model calls are held by a pause of the policy')
        : undefined;
    default:
      return undefined;
  }
}

function waitingInQueue(item: QueueItem, spec: TaskSpec, around: Surroundings, ahead: Ahead): Waiting {
  const { nowMs } = around;
  if (item.notBeforeMs > nowMs) {
    const seconds = ((item.notBeforeMs - nowMs) / 1000).toFixed(1);
    return create(WaitingSchema, {
      reason: WaitReason.RETRY_PAUSE,
      message: `the next attempt begins in ${seconds} s at the earliest`,
      untilTime: timestampFromMs(item.notBeforeMs),
    });
  }
  return waitingForNode(spec, around) ?? waitingForCap(item, around) ?? waitingForTurn(item, around, ahead);
}

/** No node will take it before something changes there. */
function waitingForNode(spec: TaskSpec, { nodes, isDraining }: Surroundings): Waiting | undefined {
  const { healthy } = nodes;
  if (healthy.length === 0) return told(WaitReason.NO_NODE, 'no node sends heartbeats');
  const fitting = nodesFor(spec, nodes);
  if (fitting.length === 0) {
    const { backend, image, gpus } = partsOfNeed(needOf(spec));
    const parts = [image === '' ? '' : ` with image ${image}`, gpus > 0 ? ` and ${count(gpus, 'GPU')}` : ''];
    const what = `runtime ${backend || 'by default'}${parts.join('')}`;
    const ids = healthy.map(({ id }) => id).join(', ');
    const none = `none of ${count(healthy.length, 'healthy node')} (${ids}) has ${what}`;
    return told(WaitReason.NO_NODE_FITS, none);
  }
  if (fitting.every(({ id }) => isDraining(id))) {
    const ids = fitting.map(({ id }) => id).join(', ');
    return told(WaitReason.NODES_DRAINING, `every node that fits is being drained: ${ids}`);
  }
  return undefined;
}

function waitingForCap(
  { taskId, taskCap, queue: name }: QueueItem,
  around: Surroundings,
): Waiting | undefined {
  const running = around.queue.running(taskId);
  if (taskCap > 0 && running >= taskCap) {
    return told(
      WaitReason.TASK_CAP,
      `${running} sessions of its task run, max_running_sessions is ${taskCap}`,
    );
  }
  const share = around.queue.shares.of(name);
  if (isAtCap(share)) {
    const message = `${share.running} sessions of queue ${name} run, its max_running is ${share.maxRunning}`;
    return told(WaitReason.QUEUE_CAP, message);
  }
  return undefined;
}

function waitingForTurn(item: QueueItem, around: Surroundings, aheadOf: Ahead): Waiting {
  const { nodes, isDraining, logFull } = around;
  if (logFull) return told(WaitReason.STATE_LOG, 'too many changes wait for the state log');
  const ahead = aheadOf(item);
  const before = `${count(ahead, 'session')} of queue ${item.queue} before it`;
  const open = nodes.healthy.filter(({ id }) => !isDraining(id));
  const places = placesFor(item, open);
  const able = places.filter(canPrepare);
  const short = able.filter((node) => !hasFreeGpus(node, item.need, 'prepare'));
  if (able.length > 0 && short.length === able.length) {
    const each = short.map((node) => freeGpusText(node, item.need)).join(', ');
    return told(WaitReason.GPU, `${gpusAskedFor(item.need)}: ${each}; ${before}`, ahead);
  }
  const keeper = able.find((node) => isKeptBack(node, item, 'prepare', around));
  const kept = keeper && keptFor(keeper, 'prepare', around);
  if (kept !== undefined) {
    const message = `${gpusAskedFor(item.need)}: ${keptText(kept)}; ${before}`;
    return told(WaitReason.GPU, message, ahead);
  }
  if (able.length > 0) return told(WaitReason.TURN, `a node is free; ${before}`, ahead);
  if (places.every(({ failures }) => isFailing(failures))) return waitingForFailing(places);
  const full = `${count(places.length, 'node')} that fit are full${asideOf(item, open, places)}`;
  return told(WaitReason.NODES_FULL, `${full}; ${before}`, ahead);
}

/** Those that fit, too, and on which it was lost. */
function asideOf({ need }: QueueItem, open: readonly NodeState[], places: readonly NodeState[]): string {
  const aside = open.filter((node) => offers(node, need) && !places.includes(node));
  return aside.length === 0 ? '' : `, and it was lost on ${aside.map(({ id }) => id).join(', ')}`;
}

function waitingForFailing(places: readonly NodeState[]): Waiting {
  const each = places.map(({ id, failures }) => `${id} (${failures.count} in a row, ${failures.reason})`);
  const message = `every node that fits fails, and is tried with one session at a time: ${each.join(', ')}`;
  const untilMs = Math.min(...places.map(({ failures }) => failures.pausedUntilMs));
  return create(WaitingSchema, {
    ...{ reason: WaitReason.NODES_FAILING, message },
    ...(untilMs > 0 && { untilTime: timestampFromMs(untilMs) }),
  });
}

const keptText = ({ sessionId, need }: QueueItem): string =>
  `what is freed is kept for session ${sessionId}, which has waited for ${count(partsOfNeed(need).gpus, 'GPU')} for long`;

const gpusAskedFor = (need: string): string => `it asks for ${count(partsOfNeed(need).gpus, 'GPU')}`;

function waitingToRun({ nodeId, sessionId }: Session, need: string, around: Surroundings): Waiting {
  const { nodes, engines, logFull } = around;
  const node = nodes.get(nodeId);
  if (node !== undefined && canRun(node)) {
    if (!hasFreeGpus(node, need, 'run')) {
      return told(WaitReason.GPU, `${gpusAskedFor(need)}: ${freeGpusText(node, need)}`);
    }
    const kept = partsOfNeed(need).gpus > 0 ? keptFor(node, 'run', around) : undefined;
    if (kept !== undefined && kept.sessionId !== sessionId) {
      return told(WaitReason.GPU, `${gpusAskedFor(need)}: ${keptText(kept)}`);
    }
    const engine = engines.full(nodeId, (id) => nodes.get(id));
    if (engine !== undefined) return waitingForEngine(engine);
    if (logFull) return told(WaitReason.STATE_LOG, 'too many changes wait for the state log');
  }
  const slots = node?.heartbeat?.runSlots ?? 0;
  return told(
    WaitReason.RUN_SLOT,
    `${node?.running.size ?? 0} of ${slots} run slots of node ${nodeId} are taken`,
  );
}

function waitingForEngine({ name, limit, maxSessions }: Engine): Waiting {
  if (limit === maxSessions) {
    return told(WaitReason.ENGINE_CAP, `the engine ${name} has its max_sessions, ${maxSessions}`);
  }
  const message = `the engine ${name} bears ${count(limit, 'session')} at the moment, of max_sessions ${maxSessions}`;
  return told(WaitReason.ENGINE_PRESSURE, message);
}

const waitingForHarness = (nodeId: string, spec: TaskSpec): Waiting =>
  told(WaitReason.HARNESS_INSTALL, `its harness ${harnessOf(spec)} is being installed on node ${nodeId}`);

const nodesFor = (spec: TaskSpec, nodes: Nodes): NodeState[] =>
  nodes.healthy.filter((node) => offers(node, needOf(spec)));

const told = (reason: WaitReason, message: string, ahead = 0): Waiting =>
  create(WaitingSchema, { reason, message, ahead });

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
