// The audit of token mode: what a prompt would have been, rendered from scratch, beside what was sent.
import { sha256 } from '../../common/ids.ts';
import { commonSuffix } from './bridge.ts';

export interface AuditCounts {
  readonly checked: number;
  readonly matches: number;
  /** By class: MISMATCHES. */
  readonly mismatches: Readonly<Record<string, number>>;
  /** Not checked: too many waited, or they could not be rendered. */
  readonly missed: number;
}

const MISMATCHES = {
  sampled: 'the first other id is one that the model sampled: text mode would have drifted there',
  rendered: 'other ids in what was rendered: the bridge is not what the template writes',
} as const;

export type Mismatch = keyof typeof MISMATCHES;

/** Whether a call is among the share that is audited; the same for the same call. */
export const isAudited = (callId: string, share: number): boolean =>
  Number.parseInt(sha256(callId).slice(0, 8), 16) < share * 2 ** 32;

/** A prompt as it was sent. */
export interface Sent {
  readonly ids: Int32Array;
  /** Ids at its end that the bridge of this call made. */
  readonly tailLength: number;
  /** Whether the id at this place was sampled. */
  readonly sampledAt: (place: number) => boolean;
}

/** What is other than in the prompt rendered from scratch; undefined: nothing. */
export function mismatchOf(rendered: Int32Array, { ids, tailLength, sampledAt }: Sent): Mismatch | undefined {
  const at = firstDifference(rendered, ids);
  if (at < 0) return undefined;
  const tailIsSame = commonSuffix(rendered, ids).length >= tailLength;
  return tailIsSame && sampledAt(at) ? 'sampled' : 'rendered';
}

/** Index of the first id that is another, -1 for none. */
function firstDifference(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length);
  for (let i = 0; i < most; i++) if (a[i] !== b[i]) return i;
  return a.length === b.length ? -1 : most;
}
