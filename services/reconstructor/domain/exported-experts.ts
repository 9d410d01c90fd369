// Routed experts in exported calls and traces (docs/export-format.md), written and read back: a call has the rows that it
// adds, and the name of the call that has those before them.
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type RoutedExperts, RoutedExpertsSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { TraceExperts } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { Call } from './call.ts';
import { type ExpertRows, fitsIds } from './experts.ts';
import { commonDepth, type TokenNode } from './token-tree.ts';

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');

/** As a key of a call. */
export function callExperts({ own, baseCallId, baseLength }: ExpertRows): JsonObject {
  return {
    ...(baseCallId !== '' && { behind: baseCallId, shared: baseLength }),
    ...(own !== undefined && {
      first: own.first,
      layers: own.layers,
      top_k: own.topK,
      item_bytes: own.itemBytes,
      rows: base64(own.rows),
    }),
  };
}

/** As a key of a trace. */
export const traceExpertsFields = (told: TraceExperts): JsonObject => ({
  layers: told.layers,
  top_k: told.topK,
  item_bytes: told.itemBytes,
  rows: base64(told.rows),
  known: [...told.known],
});

type Fields = Readonly<Record<string, unknown>>;

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** Whether it is the key of a call, whatever the rows are of. */
export function isCallExperts(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { behind, shared, first, layers, top_k, item_bytes: bytes, rows } = value as Fields;
  const named = behind === undefined || (typeof behind === 'string' && isCount(shared));
  if (rows === undefined) return named;
  return (
    named && typeof rows === 'string' && [first, layers, top_k].every(isCount) && (bytes === 1 || bytes === 2)
  );
}

/** Rows of a call whose base is known when all calls are. */
class ToldRows implements ExpertRows {
  readonly own: RoutedExperts | undefined;
  readonly baseCallId: string;
  readonly end: TokenNode;
  base: ToldRows | undefined;
  baseLength: number;

  constructor(own: RoutedExperts | undefined, { behind, shared }: Fields, end: TokenNode) {
    this.own = own;
    this.baseCallId = (behind as string | undefined) ?? '';
    this.baseLength = (shared as number | undefined) ?? 0;
    this.end = end;
  }
}

/**
 * Of a call whose last id is at `end`, from what `isCallExperts`. Undefined: its rows are not as many as its ids. Call
 * linkExperts when all calls are read.
 */
export function readExperts(value: unknown, end: TokenNode): ExpertRows | undefined {
  const fields = value as Fields;
  const own = fields['rows'] === undefined ? undefined : ownOf(fields);
  return own === undefined || fitsIds(own, end.depth) ? new ToldRows(own, fields, end) : undefined;
}

/** Each gets the call that it names, where that is there and has the ids that are said to be shared. `calls` by id. */
export function linkExperts(calls: ReadonlyMap<string, Pick<Call, 'experts'>>): void {
  const rowsOf = (call: Pick<Call, 'experts'> | undefined): ToldRows | undefined =>
    call?.experts instanceof ToldRows ? call.experts : undefined;
  const seen = new Set<ToldRows>();
  for (const call of calls.values()) {
    const way = new Set<ToldRows>();
    for (let at = rowsOf(call); at !== undefined && !seen.has(at); at = at.base) {
      seen.add(at);
      way.add(at);
      const base = rowsOf(calls.get(at.baseCallId));
      // In a file that was written by hand calls may name each other in a ring.
      at.base = base !== undefined && way.has(base) ? undefined : base;
      if (at.base !== undefined) at.baseLength = Math.min(at.baseLength, commonDepth(at.end, at.base.end));
    }
  }
}

const ownOf = ({ first, layers, top_k, item_bytes, rows }: Fields): RoutedExperts =>
  create(RoutedExpertsSchema, {
    first: first as number,
    layers: layers as number,
    topK: top_k as number,
    itemBytes: item_bytes as number,
    rows: Buffer.from(rows as string, 'base64'),
  });

/** Whether two calls say the same of theirs. */
export function isSameExperts(a: ExpertRows | undefined, b: ExpertRows | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const [{ own: left }, { own: right }] = [a, b];
  if (a.baseCallId !== b.baseCallId || left === undefined || right === undefined)
    return a.baseCallId === b.baseCallId && left === right;
  const shape = (one: RoutedExperts): string => [one.first, one.layers, one.topK, one.itemBytes].join();
  return shape(left) === shape(right) && Buffer.compare(left.rows, right.rows) === 0;
}
