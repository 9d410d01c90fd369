// Routed experts: which experts of a mixture-of-experts model each id was sent to as the engine read it, layer by layer. A
// record holds the rows that its base does not have; the id that was sampled last was read by nobody and has none.
import { create } from '@bufbuild/protobuf';
import {
  type Completion,
  type RoutedExperts,
  RoutedExpertsSchema,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';

/** The model's: engines do not tell it. */
export interface ExpertShape {
  readonly layers: number;
  /** Experts of a layer that an id is routed to. */
  readonly topK: number;
  /** Experts that a layer has. */
  readonly experts: number;
}

/** What an engine told that is to be asked. */
export interface ToldExperts {
  readonly shape: ExpertShape;
  /** Place of the first row; unset: it was not asked, as its reply would have been too large. */
  readonly from: number | undefined;
  /** Unset: nothing. */
  readonly rows: ToldRows | undefined;
}

/** Rows as an engine tells them, one for each id, of one number for each layer and place. */
export interface ToldRows {
  readonly values: Uint8Array | Uint16Array | Int32Array;
  /** Of the rows together; unset: the engine tells numbers alone. */
  readonly shape?: readonly number[];
}

/** What is no array of numbers: no rows that fit, not even none. */
export const UNREADABLE: ToldRows = { values: new Uint8Array(), shape: [] };

/** What a record says of it. */
export type ExpertFields = Pick<Completion, 'routedExperts' | 'routedExpertsFault'>;

/** Experts up to here are told apart by one byte. */
const BYTE_EXPERTS = 256;
/** Bytes of an expert's number as engines tell it, at most. */
const TOLD_BYTES = 4;

/** Bytes that the rows of so many ids take in a reply, in base64, at most. */
export const toldBytes = ({ layers, topK }: ExpertShape, ids: number): number =>
  (ids * layers * topK * TOLD_BYTES * 4) / 3;

/** The rows from `first` on of a call with so many ids, where they are what the model's shape says. */
export function expertFields(
  { shape, from, rows: told }: ToldExperts,
  first: number,
  ids: number,
): ExpertFields {
  if (from === undefined) return without('too_large');
  if (told === undefined) return without('absent');
  const width = shape.layers * shape.topK;
  if (!fits(told, ids - 1 - from, shape)) return without('wrong_length');
  const start = Math.max(first, from);
  // All that it read, another call had read before.
  if (start >= ids - 1) return without('');
  const rows = packed(told.values.subarray((start - from) * width), shape.experts);
  if (rows === undefined) return without('out_of_range');
  const { layers, topK } = shape;
  const itemBytes = rows.BYTES_PER_ELEMENT;
  const bytes = new Uint8Array(rows.buffer, rows.byteOffset, rows.byteLength);
  return {
    routedExperts: create(RoutedExpertsSchema, { rows: bytes, first: start, layers, topK, itemBytes }),
    routedExpertsFault: '',
  };
}

function fits({ values, shape }: ToldRows, rows: number, { layers, topK }: ExpertShape): boolean {
  const [told, ofLayers, ofPlaces] = shape ?? [rows, layers, topK];
  if (told !== rows || ofLayers !== layers || ofPlaces !== topK) return false;
  return values.length === rows * layers * topK;
}

const without = (fault: string): ExpertFields => ({ routedExperts: undefined, routedExpertsFault: fault });

/** In as few bytes as the experts need; undefined: one is none of them. */
function packed(told: ToldRows['values'], experts: number): Uint8Array | Uint16Array | undefined {
  const rows = experts <= BYTE_EXPERTS ? new Uint8Array(told.length) : new Uint16Array(told.length);
  for (let i = 0; i < told.length; i++) {
    const expert = told[i] as number;
    if (!(expert >= 0 && expert < experts)) return undefined;
    rows[i] = expert;
  }
  return rows;
}

/** How many rows are known of each recorded call, counted from its first id. */
export class KnownRows {
  /** Unset: none, as of all calls where engines are not asked. */
  readonly #known = new Map<number, number>();

  /** Of the first `length` ids of a call; -1: of none. */
  of(index: number, length: number): number {
    return Math.min(this.#known.get(index) ?? 0, length);
  }

  /** Take in the next record. */
  add({ index, baseIndex, baseLength, promptLength, sampledIds, routedExperts }: KnownBy): void {
    const before = this.of(baseIndex, baseLength);
    const ids = promptLength + sampledIds.byteLength / Int32Array.BYTES_PER_ELEMENT;
    const known = routedExperts !== undefined && routedExperts.first <= before ? ids - 1 : before;
    if (known > 0) this.#known.set(index, known);
  }
}

type KnownBy = Pick<Completion, 'index' | 'baseIndex' | 'baseLength' | 'promptLength' | 'sampledIds'> & {
  readonly routedExperts?: Pick<RoutedExperts, 'first'> | undefined;
};
