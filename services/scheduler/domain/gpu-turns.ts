// Whose turn it is at the GPUs of a node. A session of many would wait for ever while ever more of few go past it: when one has
// been passed for long enough, what is freed on that node is kept for it.
import { hasFreeGpus } from './gpus.ts';
import type { GpuStep, NodeState } from './nodes.ts';
import { type DispatchQueue, goesBefore, type QueueItem } from './queue.ts';
import { partsOfNeed } from './task.ts';

/** So long others may have the GPUs that it waits for, at each of its steps. */
export const GPU_PASSED_MS = 300_000;

export interface Around {
  readonly queue: DispatchQueue;
  /** Nodes that are healthy and not being drained. */
  readonly open: readonly NodeState[];
  readonly nowMs: number;
}

/** Whether a session may have its GPUs for that step; where too few are free, it is noted that it waits. */
export function takesGpus(node: NodeState, item: QueueItem, step: GpuStep, around: Around): boolean {
  if (partsOfNeed(item.need).gpus === 0) return true;
  if (hasFreeGpus(node, item.need, step)) return !isKeptBack(node, item, step, around);
  note(node, item, step, around);
  return false;
}

/** Whether the GPUs of a node are kept for another one that goes before it. */
export function isKeptBack(
  node: NodeState,
  item: QueueItem,
  step: GpuStep,
  around: Omit<Around, 'open'>,
): boolean {
  const passed = keptFor(node, step, around);
  return passed !== undefined && passed.sessionId !== item.sessionId && isFirst(passed, item, step, around);
}

/** The session for which they are kept. */
export function keptFor(node: NodeState, step: GpuStep, around: Omit<Around, 'open'>): QueueItem | undefined {
  const passed = node.passed.get(step);
  if (passed === undefined || around.nowMs - passed.sinceMs < GPU_PASSED_MS) return undefined;
  return waits(node, passed.item, step, around) ? passed.item : undefined;
}

/** The first that waits there; one session waits at one node. */
function note(node: NodeState, item: QueueItem, step: GpuStep, around: Around): void {
  const passed = node.passed.get(step);
  if (passed !== undefined && waits(node, passed.item, step, around)) return;
  const isNoted = ({ passed }: NodeState): boolean => passed.get(step)?.item.sessionId === item.sessionId;
  if (!around.open.some(isNoted)) node.passed.set(step, { item, sinceMs: around.nowMs });
}

const waits = (
  node: NodeState,
  { sessionId }: QueueItem,
  step: GpuStep,
  { queue, nowMs }: Omit<Around, 'open'>,
): boolean => (step === 'run' ? node.ready.has(sessionId) : queue.isDue(sessionId, nowMs));

/** Between queues the one that is behind goes first, where it is prepared; what is ready has had its turn there. */
function isFirst(
  passed: QueueItem,
  item: QueueItem,
  step: GpuStep,
  { queue: { shares } }: Omit<Around, 'open'>,
): boolean {
  if (passed.queue === item.queue) return goesBefore(passed, item);
  return step === 'run' || shares.of(passed.queue).tag <= shares.of(item.queue).tag;
}
