// Routed experts of calls, and of the traces that are made of them. A call has the rows that its base does not have, so the
// rows of a trace lie in its last call and in the bases behind that: each is the row of the first call that read the id.
import { create } from '@bufbuild/protobuf';
import type { RoutedExperts } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import {
  type TraceExperts,
  TraceExpertsSchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { Call, MaskedCall } from './call.ts';
import type { Branch } from './forest.ts';
import type { CallRecord } from './record.ts';

/** Routed experts of a trajectory, a hundred times its ids and more; the traces that come when it is full have none. */
export const EXPERT_BYTES_MAX = 64 * 1024 * 1024;

/** What is known of a call's ids. */
export interface ExpertRows {
  /** Its own rows; unset: none. */
  readonly own: RoutedExperts | undefined;
  /** Of the call with which it shares its first `baseLength` ids: that has them, or knows who does. */
  readonly base: ExpertRows | undefined;
  /** Id of that call; empty: there is none. */
  readonly baseCallId: string;
  readonly baseLength: number;
}

const rowBytes = ({
  layers,
  topK,
  itemBytes,
}: Pick<RoutedExperts, 'layers' | 'topK' | 'itemBytes'>): number => layers * topK * itemBytes;

/** Unset where nothing is known. Throws what `invalid` makes of a column that cannot be right. */
export function expertRowsOf(
  record: CallRecord,
  from: Pick<Call, 'callId' | 'experts'> | undefined,
  ids: number,
  invalid: (record: CallRecord, what: string) => Error,
): ExpertRows | undefined {
  const { routedExperts: own, baseLength } = record;
  const base = from?.experts;
  if (own === undefined && base === undefined) return undefined;
  const behind = { base, baseCallId: base === undefined ? '' : (from?.callId ?? ''), baseLength };
  if (own === undefined) return { own, ...behind };
  if (!fitsIds(own, ids))
    throw invalid(record, `has ${own.rows.byteLength} bytes of routed experts for ${ids} ids`);
  return { own, ...behind };
}

/** Whether there is a row for each of so many ids from the first one on, but the last. */
export const fitsIds = (own: RoutedExperts, ids: number): boolean =>
  own.first < ids && own.rows.byteLength === (ids - 1 - own.first) * rowBytes(own);

/** The column of a trace of so many ids; undefined where no row of it is known. */
export function traceExperts(from: ExpertRows | undefined, ids: number): TraceExperts | undefined {
  let made: TraceExperts | undefined;
  let to = ids;
  for (let at = from; at !== undefined && to > 0; at = at.base) {
    const { own, baseLength } = at;
    if (own !== undefined && (made === undefined || isAlike(own, made))) {
      made ??= emptyColumn(own, ids);
      to = copyRows(own, made, to);
    }
    to = Math.min(to, baseLength);
  }
  return made;
}

const isAlike = (own: RoutedExperts, made: TraceExperts): boolean =>
  own.layers === made.layers && own.topK === made.topK && own.itemBytes === made.itemBytes;

function emptyColumn(shape: RoutedExperts, ids: number): TraceExperts {
  const { layers, topK, itemBytes } = shape;
  const rows = new Uint8Array(ids * rowBytes(shape));
  return create(TraceExpertsSchema, { rows, known: new Uint8Array(ids), layers, topK, itemBytes });
}

/** Copies the rows before `to`; where those before them are looked for. */
function copyRows(own: RoutedExperts, made: TraceExperts, to: number): number {
  const width = rowBytes(own);
  const end = Math.min(to, own.first + own.rows.byteLength / width);
  if (end <= own.first) return to;
  made.rows.set(own.rows.subarray(0, (end - own.first) * width), own.first * width);
  made.known.fill(1, own.first, end);
  return own.first;
}

/** Ids of a branch, prompt and response. */
export function lengthOf(branch: Readonly<Branch>): number {
  const { prompt, sampledIds } = branch.at(-1) as MaskedCall;
  return prompt.depth + sampledIds.length;
}

/** Bytes that the routed experts of a branch take. */
export function expertBytesOf(branch: Readonly<Branch>): number {
  let at = (branch.at(-1) as MaskedCall).experts;
  while (at !== undefined && at.own === undefined) at = at.base;
  return at?.own === undefined ? 0 : rowBytes(at.own) * lengthOf(branch);
}
