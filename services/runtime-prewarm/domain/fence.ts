// When a node that hears nothing from a scheduler ends its sessions' sandboxes by itself.
import { NODE_FENCE_MS } from '../../common/limits.ts';

export interface FenceState {
  /** Time of the last answered heartbeat, in ms of a steady clock; undefined: no scheduler was seen since the start or the fence. */
  readonly answeredMs: number | undefined;
}

export const UNSEEN: FenceState = { answeredMs: undefined };

export const answered = (nowMs: number): FenceState => ({ answeredMs: nowMs });

/** The scheduler that had answered has been silent for NODE_FENCE_MS: it gives this node up, so the node lets go first. */
export const mustFence = ({ answeredMs }: FenceState, nowMs: number): boolean =>
  answeredMs !== undefined && nowMs - answeredMs >= NODE_FENCE_MS;
