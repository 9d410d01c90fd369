// Nodes as their heartbeats show them, and the slots that sessions take there. Kept in memory only: heartbeats and the
// sessions' records bring it back.
import type { Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { Heartbeat, Offer } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Reason } from '../../common/errors.ts';
import { HEARTBEAT_MS, NODE_FORGET_MS, NODE_LOST_MS } from '../../common/limits.ts';
import { type Failures, failuresAfter, mayTry, NO_FAILURES, resumed } from './failing.ts';
import { hasImage } from './images.ts';
import { endingWithin, type Pace, paceAfter } from './pace.ts';
import type { QueueItem } from './queue.ts';
import { isOpen, SessionState, sessionOf } from './session.ts';
import { partsOfNeed } from './task.ts';

/** What comes in so short a time came in one piece: heartbeats that had waited in a connection which was broken. */
const AT_ONCE_MS = HEARTBEAT_MS / 2;

export interface NodeState {
  readonly id: string;
  /** Undefined until it is heard: a session's record names it. */
  heartbeat: Heartbeat | undefined;
  /** Of the last heartbeat, or of the moment at which the node was first named; milliseconds of a monotonic clock. */
  seenMs: number;
  /** Unix time of the last heartbeat in milliseconds, 0 for none. */
  seenUnixMs: number;
  lost: boolean;
  /** When it came back with the boot with which it had been lost, by the same clock. */
  backMs: number;
  /**
   * It is heard once more before it prepares. A session has lost its sandbox there since the last heartbeat: its manager may
   * have ended. Or it is just back: what it had said before it let go of all it had may come first.
   */
  doubted: boolean;
  /** Sessions from PREPARING to FINISHING, in the order in which they came to their state. */
  readonly preparing: Set<string>;
  readonly ready: Set<string>;
  readonly running: Set<string>;
  readonly finishing: Set<string>;
  /** What those of all these need which have a sandbox, or get one, with GPUs; by session. */
  readonly gpuNeeds: Map<string, string>;
  /** Sessions that wait for GPUs here and are passed by others, one for each step, see gpu-turns.ts. */
  readonly passed: Map<GpuStep, Passed>;
  /** Sessions in RUNNING whose harness runs elsewhere: they take no slot. */
  readonly open: Set<string>;
  pace: Pace;
  failures: Failures;
}

/** What a session would do with its GPUs: have its sandbox prepared, or run in it. */
export type GpuStep = 'prepare' | 'run';

export interface Passed {
  readonly item: QueueItem;
  /** Of the scheduler's clock. */
  readonly sinceMs: number;
}

export class Nodes {
  /** Called when a node has failed too often in a row. */
  onPaused: (node: NodeState) => void = () => {};
  readonly #nodes = new Map<string, NodeState>();

  get all(): IterableIterator<NodeState> {
    return this.#nodes.values();
  }

  get(id: string): NodeState | undefined {
    return this.#nodes.get(id);
  }

  /** Nodes that can take work. */
  get healthy(): NodeState[] {
    return [...this.#nodes.values()].filter(isHealthy);
  }

  /** A heartbeat came. */
  beat(heartbeat: Heartbeat, nowMs: number, unixMs: number): { node: NodeState; news: NodeNews } {
    const node = this.#node(heartbeat.nodeId, nowMs);
    const news = newsOf(node, heartbeat);
    if (news === 'taken') return { node, news };
    node.heartbeat = heartbeat;
    node.seenMs = nowMs;
    node.seenUnixMs = unixMs;
    node.lost = heartbeat.leaving;
    if (news === 'back') node.backMs = nowMs;
    node.doubted = news !== 'rebooted' && nowMs - node.backMs < AT_ONCE_MS;
    if (news === 'rebooted') node.failures = NO_FAILURES;
    return { node, news };
  }

  /** Nodes whose heartbeat is newly overdue. Those that are overdue for very long and hold nothing are forgotten. */
  overdue(nowMs: number): NodeState[] {
    const lost: NodeState[] = [];
    for (const node of this.#nodes.values()) {
      const silentMs = nowMs - node.seenMs;
      if (!node.lost && silentMs > NODE_LOST_MS) {
        node.lost = true;
        lost.push(node);
      }
      if (silentMs > NODE_FORGET_MS && sessionsOn(node).length === 0) this.#nodes.delete(node.id);
    }
    return lost;
  }

  /** Ends the pauses that are over by the clock of the records. */
  resume(nowMs: number): void {
    for (const node of this.#nodes.values()) node.failures = resumed(node.failures, nowMs);
  }

  /** A session went from one state to another; `gpuNeed`: what it needs, where its sandbox has GPUs then. */
  move(before: SessionRecord, after: SessionRecord, nowMs: number, gpuNeed?: string): void {
    const left = this.#nodes.get(sessionOf(before).nodeId);
    if (left !== undefined && hasLost(left, before, after)) left.doubted = true;
    // What ends elsewhere says nothing of the node.
    if (left !== undefined && !isOpen(before)) this.#count(left, before, after);
    this.#slot(before, nowMs)?.delete(sessionOf(before).sessionId);
    this.#slot(after, nowMs)?.add(sessionOf(after).sessionId);
    left?.gpuNeeds.delete(sessionOf(before).sessionId);
    if (gpuNeed !== undefined) {
      this.#node(sessionOf(after).nodeId, nowMs).gpuNeeds.set(sessionOf(after).sessionId, gpuNeed);
    }
    const node = this.#nodes.get(sessionOf(after).nodeId);
    if (node !== undefined && !isOpen(before)) node.pace = paceAfter(node.pace, before, after);
  }

  /** A node that is lost has lost all that it had at once, and an older boot is over. */
  #count(node: NodeState, before: SessionRecord, after: SessionRecord): void {
    if (node.lost || before.bootId !== node.heartbeat?.bootId) return;
    const { pausedUntilMs } = node.failures;
    node.failures = failuresAfter(node.failures, before, after);
    if (pausedUntilMs === 0 && node.failures.pausedUntilMs > 0) this.onPaused(node);
  }

  #slot(record: SessionRecord, nowMs: number): Set<string> | undefined {
    const { state, nodeId } = sessionOf(record);
    switch (state) {
      case SessionState.PREPARING:
        return this.#node(nodeId, nowMs).preparing;
      case SessionState.READY:
        return this.#node(nodeId, nowMs).ready;
      case SessionState.RUNNING:
        return this.#node(nodeId, nowMs)[isOpen(record) ? 'open' : 'running'];
      case SessionState.FINISHING:
        return this.#node(nodeId, nowMs).finishing;
      default:
        return undefined;
    }
  }

  #node(id: string, nowMs: number): NodeState {
    let node = this.#nodes.get(id);
    if (node === undefined) {
      node = {
        id,
        heartbeat: undefined,
        seenMs: nowMs,
        seenUnixMs: 0,
        lost: false,
        backMs: Number.NEGATIVE_INFINITY,
        doubted: false,
        preparing: new Set(),
        ready: new Set(),
        running: new Set(),
        finishing: new Set(),
        open: new Set(),
        gpuNeeds: new Map(),
        passed: new Map(),
        pace: {},
        failures: NO_FAILURES,
      };
      this.#nodes.set(id, node);
    }
    return node;
  }
}

/** Of an older boot it would say nothing. */
const hasLost = ({ heartbeat }: NodeState, before: SessionRecord, after: SessionRecord): boolean =>
  before.bootId === heartbeat?.bootId &&
  isOver(sessionOf(after)) &&
  !isOver(sessionOf(before)) &&
  OF_AN_END.some((reason) => reason === sessionOf(after).failure?.reason);

/** What sessions end with whose manager does. */
const OF_AN_END: readonly Reason[] = ['RUNTIME_LOST', 'SHUTTING_DOWN'];

/** The attempt. */
const isOver = ({ state }: Session): boolean => state === SessionState.QUEUED || state === SessionState.ENDED;

/**
 * What a heartbeat tells beside being there; `left`: it was stopped, and has nothing any more; `taken`: it is of another machine
 * than the one that is the node, and counts for nothing.
 */
export type NodeNews = 'none' | 'joined' | 'rebooted' | 'back' | 'left' | 'taken';

function newsOf(node: NodeState, heartbeat: Heartbeat): NodeNews {
  if (isTaken(node, heartbeat)) return 'taken';
  if (heartbeat.leaving) return 'left';
  if (node.heartbeat === undefined) return 'joined';
  if (node.heartbeat.bootId !== heartbeat.bootId) return 'rebooted';
  return node.lost ? 'back' : 'none';
}

/** Who begins anew with the same data has nobody beside it; with other data, only when the earlier one is silent for long. */
const isTaken = ({ heartbeat, lost }: NodeState, { dataId }: Heartbeat): boolean =>
  heartbeat !== undefined && !lost && ![heartbeat.dataId, dataId].includes('') && heartbeat.dataId !== dataId;

export const isHealthy = (node: NodeState): boolean => node.heartbeat !== undefined && !node.lost;

export const sessionsOn = (node: NodeState): string[] => [
  ...node.preparing,
  ...node.ready,
  ...node.running,
  ...node.finishing,
  ...node.open,
];

/**
 * Whether a node may prepare one more: a slot for preparing is free, the sandboxes to come can all run at once, wait within
 * the node's ready slots, or follow a run that ends while they are prepared; and what has run there is not piling up behind
 * the evaluators. One that fails is tried now and then only.
 */
export function canPrepare(node: NodeState): boolean {
  const { heartbeat, preparing, ready, running, finishing } = node;
  if (heartbeat === undefined || node.lost || node.doubted) return false;
  if (!mayTry(node.failures, preparing.size)) return false;
  const { prepareSlots, runSlots, readySlots, evaluateSlots } = heartbeat;
  const ending = readySlots === 0 ? 0 : Math.min(prepareSlots, endingWithin(node.pace, runSlots));
  return (
    preparing.size < prepareSlots &&
    preparing.size + ready.size < readySlots + Math.max(0, runSlots - running.size) + ending &&
    finishing.size < 2 * evaluateSlots
  );
}

export const canRun = (node: NodeState): boolean =>
  isHealthy(node) && node.ready.size > 0 && node.running.size < (node.heartbeat?.runSlots ?? 0);

/** The part of its slots that is taken: the least loaded node goes first. */
export const loadOf = ({ preparing, ready, running, heartbeat }: NodeState): number =>
  (preparing.size + ready.size + running.size) / Math.max(1, heartbeat?.runSlots ?? 1);

export function offersBackend({ heartbeat }: NodeState, need: string): boolean {
  const { backend } = partsOfNeed(need);
  if (backend === '') return (heartbeat?.defaultBackend ?? '') !== '';
  return heartbeat?.backends.includes(backend) ?? false;
}

/** What a node makes sandboxes of, for a need; undefined where it does not offer the backend. */
export function offerFor({ heartbeat }: NodeState, need: string): Offer | undefined {
  const { backend } = partsOfNeed(need);
  const resolved = backend === '' ? heartbeat?.defaultBackend : backend;
  return heartbeat?.offers.find((offer) => offer.backend === resolved);
}

/** Whether a node has the image and so many GPUs, free or not; what it may fetch, it has. */
export const offers = (node: NodeState, need: string): boolean =>
  hasImageOf(node, need) && partsOfNeed(need).gpus <= gpusOf(node, need);

/** GPUs that it could give to one session, any number where they are not claimed. */
export function gpusOf(node: NodeState, need: string): number {
  const isClaimed = offerFor(node, need)?.gpusClaimed === true;
  return isClaimed ? (node.heartbeat?.gpus ?? 0) : Number.POSITIVE_INFINITY;
}

export function hasImageOf(node: NodeState, need: string): boolean {
  if (!offersBackend(node, need)) return false;
  const { image } = partsOfNeed(need);
  if (image === '') return true;
  const offer = offerFor(node, need);
  return offer !== undefined && hasImage(offer, image);
}
