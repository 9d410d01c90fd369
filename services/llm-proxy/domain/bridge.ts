// From the exact ids of a recorded call to the ids of a request that goes on from it, without rendering or encoding the
// history again. A sketch of the conversation (template-sketch.ts) is rendered as the engine renders, with the
// generation prompt each time: short, and with everything on which a chat template is known to depend.

/** Ids at the end of both. */
export function commonSuffix(a: Int32Array, b: Int32Array): Int32Array {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a[a.length - 1 - n] === b[b.length - 1 - n]) n++;
  return a.subarray(a.length - n);
}

export function startsWith(ids: Int32Array, start: Int32Array): boolean {
  if (start.length > ids.length) return false;
  for (let i = 0; i < start.length; i++) if (ids[i] !== start[i]) return false;
  return true;
}

export function joined(ids: Int32Array, tail: Int32Array): Int32Array {
  const all = new Int32Array(ids.length + tail.length);
  all.set(ids);
  all.set(tail, ids.length);
  return all;
}

/** Sketches of one shape, rendered. */
export interface ShapeRenderings {
  /** What comes before the sampled turn. */
  readonly before: Int32Array;
  /** All, with two texts in the sampled turn. */
  readonly one: Int32Array;
  readonly other: Int32Array;
  /** As `one` with another thinking in the sampled turn; unset where it has none. */
  readonly otherThinking: Int32Array | undefined;
}

/** What a template writes around messages, whatever they say. */
export interface Frame {
  /** Id that ends an assistant's turn. */
  readonly turnEnd: number;
  /** Ids behind a last message: its end and the generation prompt. */
  readonly trailer: Int32Array;
}

/** The beginning that all renderings of a shape have: up to the end of the sampled turn, without what ends it. */
export type Shape = { readonly start: Int32Array } | { readonly fault: 'history' | 'thinking' | 'turn' };

/** Where the sampled turn ends in a shape, if the template extends what came before it. */
export function shapeOf({ before, one, other, otherThinking }: ShapeRenderings, frame: Frame): Shape {
  const open = before.subarray(0, before.length - commonSuffix(before, frame.trailer).length);
  if (!startsWith(one, open)) return { fault: 'history' };
  if (otherThinking !== undefined && equal(one, otherThinking)) return { fault: 'thinking' };
  // A turn that says nothing ends where it begins.
  if (equal(one, other))
    return one[before.length] === frame.turnEnd && startsWith(one, before) ? { start: before } : TURN;
  const rest = commonSuffix(one, other);
  const end = rest.indexOf(frame.turnEnd);
  if (end < 0) return TURN;
  return { start: one.slice(0, one.length - rest.length + end) };
}

/** How the sampled ids of a recorded call end. */
export interface SampledEnd {
  readonly lastId: number | undefined;
  /** The model ended its turn itself: no limit, stop string or stop id did. */
  readonly ended: boolean;
}

/**
 * What follows the sampled ids: the end of the turn where it was not sampled, the new messages, the generation prompt.
 * `rendered` is the sketch with the real new messages; unset: it does not begin as its shape does.
 */
export function tailOf(
  rendered: Int32Array,
  start: Int32Array,
  frame: Frame,
  end: SampledEnd,
): Int32Array | undefined {
  if (!startsWith(rendered, start) || rendered[start.length] !== frame.turnEnd) return undefined;
  const closed = end.lastId === frame.turnEnd || end.ended;
  return rendered.subarray(start.length + (closed ? 1 : 0));
}

const TURN = { fault: 'turn' } as const;

const equal = (a: Int32Array, b: Int32Array): boolean => a.length === b.length && startsWith(a, b);
