// When a node that hears nothing from a scheduler ends its sessions' sandboxes by itself.
import { NODE_FENCE_MS } from '../../common/limits.ts';

/** Since the start of the node, or since it last let go. */
export interface FenceState {
  /**
   * Time of the last heartbeat that was answered, in ms of a steady clock; where none was, of the first one that was sent: a
   * scheduler may have heard it, though its answer came late or never. Undefined: none was sent.
   */
  readonly heardMs: number | undefined;
  /** A scheduler counts on this node: it has answered, or given work. */
  readonly known: boolean;
}

export const UNSEEN: FenceState = { heardMs: undefined, known: false };

/** A heartbeat goes out. */
export const said = (state: FenceState, nowMs: number): FenceState =>
  state.heardMs === undefined ? { ...state, heardMs: nowMs } : state;

/** Nobody was there to hear the one that was sent at that time: it counts only where one was heard before it. */
export const unheard = (state: FenceState, sentMs: number): FenceState =>
  state.heardMs === sentMs ? { ...state, heardMs: undefined } : state;

/** One that was sent at that time was answered. */
export const answered = (sentMs: number): FenceState => ({ heardMs: sentMs, known: true });

/** Work has come. */
export const given = (state: FenceState): FenceState => (state.known ? state : { ...state, known: true });

/** The scheduler may have heard nothing for NODE_FENCE_MS: it gives this node up, so the node lets go first. */
export const mustFence = ({ heardMs, known }: FenceState, nowMs: number): boolean =>
  known && heardMs !== undefined && nowMs - heardMs >= NODE_FENCE_MS;
