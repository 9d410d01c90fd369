// A group as it lies in the store for streams in LAYOUT_COLUMNS (ADR 42). What a filter looks at is read from its columns;
// nothing else of it is decoded, unless something of it is left out.
import { create } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import {
  BatchColumnsSchema,
  BatchDetailsSchema,
  TraceSchema,
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { fromStored } from '../../common/stored.ts';
import { fieldsIn } from './fields.ts';
import type { GroupView, SessionView } from './filter.ts';
import { contentOf, field, type StoredTrace } from './stored.ts';

const { columns: COLUMNS, details: DETAILS, taskId: TASK_ID } = TrajectoryBatchSchema.field;
const COLUMN = BatchColumnsSchema.field;
const TRACE = TraceSchema.field;
const TRACES = TrajectorySchema.field.traces.number;
const TRAJECTORIES = BatchDetailsSchema.field.trajectories.number;
const ID_BYTES = 4;

export interface Packed {
  /** Binary form of the batch. */
  readonly body: Uint8Array;
  readonly view: () => GroupView;
  /** Token ids in its traces. */
  readonly tokens: number;
}

/** Throws where the body is no batch in that layout. */
export function packedOf(body: Uint8Array): Packed {
  const columns = columnsIn(body);
  const view = (): GroupView => ({ taskId: taskIn(body), sessions: sessionsOf(columns) });
  const idsIn = (no: number): number => (columns.get(no)?.byteLength ?? 0) / ID_BYTES;
  const tokens = idsIn(COLUMN.promptIds.number) + idsIn(COLUMN.responseIds.number);
  return { body, tokens, view };
}

function taskIn(body: Uint8Array): string {
  for (const { no, data } of fieldsIn(body)) {
    if (no === TASK_ID.number) return Buffer.from(contentOf(data)).toString();
  }
  return '';
}

/** The columns of a batch, by field number. */
function columnsIn(body: Uint8Array): Map<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  for (const { no, data } of fieldsIn(body)) {
    if (no !== COLUMNS.number) continue;
    const reader = new BinaryReader(contentOf(data));
    while (reader.pos < reader.len) found.set(reader.tag()[0], reader.bytes());
  }
  return found;
}

type Numbers = Int32ArrayConstructor | Float64ArrayConstructor | BigUint64ArrayConstructor;

/** A copy: it lies anywhere. */
function array<T extends Numbers>(type: T, bytes: Uint8Array = new Uint8Array()): InstanceType<T> {
  return new type(new Uint8Array(bytes).buffer) as InstanceType<T>;
}

function sessionsOf(columns: ReadonlyMap<number, Uint8Array>): SessionView[] {
  const prompts = array(Int32Array, columns.get(COLUMN.promptOffsets.number));
  const responses = array(Int32Array, columns.get(COLUMN.responseOffsets.number));
  const indexes = array(Int32Array, columns.get(COLUMN.trajectoryIndexes.number));
  const rewards = array(Float64Array, columns.get(COLUMN.trajectoryRewards.number));
  const min = array(BigUint64Array, columns.get(COLUMN.policyVersionsMin.number));
  const max = array(BigUint64Array, columns.get(COLUMN.policyVersionsMax.number));
  const tokens = new Array<number>(rewards.length).fill(0);
  indexes.forEach((index, i) => {
    const ofTrace = lengthAt(prompts, i) + lengthAt(responses, i);
    tokens[index] = (tokens[index] ?? 0) + ofTrace;
  });
  const traceRewards = (): Float64Array => array(Float64Array, columns.get(COLUMN.rewards.number));
  return tokens.map((ofSession, index) => ({
    reward: orNone(rewards[index]),
    traceRewards: () =>
      [...traceRewards()].filter((reward, i) => indexes[i] === index && orNone(reward) !== undefined),
    policyVersionMin: min[index] ?? 0n,
    policyVersionMax: max[index] ?? 0n,
    tokens: ofSession,
  }));
}

const lengthAt = (offsets: Int32Array, i: number): number => (offsets[i + 1] ?? 0) - (offsets[i] ?? 0);

const orNone = (reward: number | undefined): number | undefined =>
  Number.isNaN(reward) ? undefined : reward;

/** The batch that it was made of: its traces are as they are stored. */
export function unpacked(body: Uint8Array): TrajectoryBatch {
  const columns = columnsIn(body);
  const prompts = array(Int32Array, columns.get(COLUMN.promptOffsets.number));
  const responses = array(Int32Array, columns.get(COLUMN.responseOffsets.number));
  const head: Uint8Array[] = [];
  const trajectories: Trajectory[] = [];
  let trace = 0;
  const traceOf = (rest: Uint8Array): StoredTrace => {
    const at = (no: number, offsets: Int32Array, itemBytes: number): Uint8Array =>
      (columns.get(no) ?? new Uint8Array()).subarray(
        (offsets[trace] ?? 0) * itemBytes,
        (offsets[trace + 1] ?? 0) * itemBytes,
      );
    const parts = [
      ...column(TRACE.promptIds.number, at(COLUMN.promptIds.number, prompts, ID_BYTES)),
      ...column(TRACE.responseIds.number, at(COLUMN.responseIds.number, responses, ID_BYTES)),
      ...column(TRACE.lossMask.number, at(COLUMN.lossMask.number, responses, 1)),
      ...column(TRACE.logprobs.number, at(COLUMN.logprobs.number, responses, ID_BYTES)),
    ];
    trace++;
    return storedTrace(parts, rest);
  };
  for (const { no, data, bytes } of fieldsIn(body)) {
    if (no === DETAILS.number) {
      for (const one of fieldsIn(contentOf(data))) {
        if (one.no === TRAJECTORIES) trajectories.push(trajectoryOf(contentOf(one.data), traceOf));
      }
    } else if (no !== COLUMNS.number) head.push(bytes);
  }
  const batch = fromStored(TrajectoryBatchSchema, Buffer.concat(head));
  return create(TrajectoryBatchSchema, { ...batch, trajectories });
}

function trajectoryOf(bytes: Uint8Array, traceOf: (rest: Uint8Array) => StoredTrace): Trajectory {
  const head: Uint8Array[] = [];
  const traces: StoredTrace[] = [];
  for (const one of fieldsIn(bytes)) {
    if (one.no === TRACES) traces.push(traceOf(contentOf(one.data)));
    else head.push(one.bytes);
  }
  const trajectory = fromStored(TrajectorySchema, Buffer.concat(head));
  trajectory.$unknown = traces;
  return trajectory;
}

/** As it would be read from the store: its own reward lies apart. */
function storedTrace(columns: readonly Uint8Array[], rest: Uint8Array): StoredTrace {
  const others = [...fieldsIn(rest)];
  const reward = others.find(({ no }) => no === TRACE.reward.number);
  const parts = [...columns, ...others.filter((one) => one !== reward).map(({ bytes }) => bytes)];
  const [, ...content] = field(TRACES, parts);
  const size = content.reduce((sum, part) => sum + part.byteLength, 0);
  const data = Buffer.concat([new BinaryWriter().uint32(size).finish(), ...content]);
  return { no: TRACES, wireType: WireType.LengthDelimited, data, ...(reward && { more: reward.bytes }) };
}

/** Not written where it is empty, as in encode.ts. */
const column = (no: number, bytes: Uint8Array): Uint8Array[] =>
  bytes.byteLength === 0 ? [] : field(no, [bytes]);
