// Which node may take a session that waits: one that fits and, while there is such a one, on which none of its attempts was
// lost.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { isCounted } from './attempts.ts';
import { type NodeState, offers } from './nodes.ts';
import type { QueueItem } from './queue.ts';

type Wanted = Pick<QueueItem, 'need' | 'lostOn'>;

const NOWHERE: readonly string[] = [];

/** Nodes on which attempts that count were lost since the session was submitted, or went again on request; in one order. */
export function lostOn({ session, attemptBase }: SessionRecord): readonly string[] {
  const lost =
    session?.attempts.filter(
      (one) => one.attempt > attemptBase && one.endTime !== undefined && isCounted(one),
    ) ?? [];
  // Most have none, and many wait.
  return lost.length === 0 ? NOWHERE : [...new Set(lost.map(({ nodeId }) => nodeId))].sort();
}

/** `open`: nodes that are healthy and not being drained. */
export function mayTake(node: NodeState, { need, lostOn }: Wanted, open: readonly NodeState[]): boolean {
  if (!offers(node, need)) return false;
  if (!lostOn.includes(node.id)) return true;
  return !open.some((other) => !lostOn.includes(other.id) && offers(other, need));
}

/** Those of the open nodes that may take it, full or not. */
export const placesFor = (wanted: Wanted, open: readonly NodeState[]): NodeState[] =>
  open.filter((node) => mayTake(node, wanted, open));
