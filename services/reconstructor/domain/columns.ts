// Batches in LAYOUT_COLUMNS: each column is one array over all traces. Made of traces that are not decoded (stored.ts), and
// taken apart into such again.
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import {
  BatchColumnsSchema,
  BatchDetailsSchema,
  TraceSchema,
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { fieldsIn } from './fields.ts';
import { contentOf, field, type StoredTrace, storedTraces } from './stored.ts';

const { columns: COLUMNS, details: DETAILS } = TrajectoryBatchSchema.field;
const { promptIds, responseIds, lossMask, logprobs, reward: REWARD } = TraceSchema.field;
const COLUMN = BatchColumnsSchema.field;
const TRACES = TrajectorySchema.field.traces.number;
const TRAJECTORIES = BatchDetailsSchema.field.trajectories.number;
const ID_BYTES = 4;
const NOTHING: Uint8Array = new Uint8Array();

interface Columns {
  promptIds: Uint8Array;
  responseIds: Uint8Array;
  lossMask: Uint8Array;
  logprobs: Uint8Array;
}

/** A trace cut at its columns. */
interface Cut extends Readonly<Columns> {
  /** All its other fields. */
  readonly rest: readonly Uint8Array[];
  /** Its own, if it has one. */
  readonly reward: number | undefined;
}

/** Throws where the columns of a trace do not fit together. */
export function checkColumns(trajectory: Trajectory): void {
  for (const trace of storedTraces(trajectory)) cut(trace);
}

/** The binary form of a batch in this layout, in pieces: columns are not copied. Throws as `checkColumns`. */
export function columnsOf(batch: TrajectoryBatch): Uint8Array[] {
  const { trajectories } = batch;
  const head = toBinary(TrajectoryBatchSchema, create(TrajectoryBatchSchema, { ...batch, trajectories: [] }));
  const cuts = trajectories.map((one) => storedTraces(one).map(cut));
  const details = trajectories.flatMap((one, i) => field(TRAJECTORIES, detailsOf(one, cuts[i] ?? [])));
  return [
    head,
    ...field(COLUMNS.number, columnFields(trajectories, cuts)),
    ...field(DETAILS.number, details),
  ];
}

function columnFields(trajectories: readonly Trajectory[], cuts: readonly (readonly Cut[])[]): Uint8Array[] {
  const all = cuts.flat();
  const array = (no: number, values: ArrayBufferView): Uint8Array[] => field(no, [bytesOf(values)]);
  const rewards = cuts.flatMap((of, i) =>
    of.map((one) => one.reward ?? trajectories[i]?.reward ?? Number.NaN),
  );
  return [
    ...array(COLUMN.promptOffsets.number, offsets(all.map((one) => one.promptIds))),
    ...array(COLUMN.responseOffsets.number, offsets(all.map((one) => one.responseIds))),
    ...array(COLUMN.trajectoryIndexes.number, Int32Array.from(cuts.flatMap((of, i) => of.map(() => i)))),
    ...array(COLUMN.rewards.number, Float64Array.from(rewards)),
    ...array(
      COLUMN.trajectoryRewards.number,
      Float64Array.from(trajectories, (one) => one.reward ?? Number.NaN),
    ),
    ...array(
      COLUMN.policyVersionsMin.number,
      BigUint64Array.from(trajectories, (one) => one.policyVersionMin),
    ),
    ...array(
      COLUMN.policyVersionsMax.number,
      BigUint64Array.from(trajectories, (one) => one.policyVersionMax),
    ),
    ...array(
      COLUMN.outcomes.number,
      Uint8Array.from(trajectories, (one) => one.outcome),
    ),
    ...droppedReasons(trajectories),
    ...field(
      COLUMN.promptIds.number,
      all.map((one) => one.promptIds),
    ),
    ...field(
      COLUMN.responseIds.number,
      all.map((one) => one.responseIds),
    ),
    ...field(
      COLUMN.lossMask.number,
      all.map((one) => one.lossMask),
    ),
    ...field(
      COLUMN.logprobs.number,
      all.map((one) => one.logprobs),
    ),
  ];
}

function droppedReasons(trajectories: readonly Trajectory[]): Uint8Array[] {
  if (trajectories.every(({ droppedReason }) => droppedReason === '')) return [];
  const { number } = COLUMN.droppedReasons;
  return trajectories.flatMap(({ droppedReason }) => field(number, [Buffer.from(droppedReason)]));
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

function offsets(columns: readonly Uint8Array[]): Int32Array {
  const all = new Int32Array(columns.length + 1);
  columns.forEach((column, i) => {
    all[i + 1] = (all[i] ?? 0) + column.byteLength / ID_BYTES;
  });
  return all;
}

function detailsOf(trajectory: Trajectory, traces: readonly Cut[]): Uint8Array[] {
  const head = toBinary(TrajectorySchema, trajectory, { writeUnknownFields: false });
  return [head, ...traces.flatMap(({ rest }) => field(TRACES, rest))];
}

function cut({ data, more = NOTHING }: StoredTrace): Cut {
  const found: Columns = { promptIds: NOTHING, responseIds: NOTHING, lossMask: NOTHING, logprobs: NOTHING };
  const content = contentOf(data);
  const rest: Uint8Array[] = [];
  let reward: number | undefined;
  const reader = new BinaryReader(content);
  // What is no column lies behind them as a rule, in one piece.
  let run = 0;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [no, wireType] = reader.tag();
    const name = NAMES.get(no);
    if (name !== undefined && wireType === WireType.LengthDelimited) {
      found[name] = reader.bytes();
      if (run < start) rest.push(content.subarray(run, start));
      run = reader.pos;
    } else if (no === REWARD.number && wireType === WireType.Bit64) reward = reader.double();
    else reader.skip(wireType, no);
  }
  if (run < content.byteLength) rest.push(content.subarray(run));
  if (more.byteLength > 0) rest.push(more);
  check(found);
  return { ...found, rest, reward: rewardIn(more) ?? reward };
}

function rewardIn(fields: Uint8Array): number | undefined {
  for (const { no, data } of fieldsIn(fields)) {
    if (no === REWARD.number) return new BinaryReader(data).double();
  }
  return undefined;
}

const NAMES = new Map<number, keyof Columns>([
  [promptIds.number, 'promptIds'],
  [responseIds.number, 'responseIds'],
  [lossMask.number, 'lossMask'],
  [logprobs.number, 'logprobs'],
]);

function check(trace: Columns): void {
  const [prompt, response] = [trace.promptIds.byteLength, trace.responseIds.byteLength];
  const isWhole = prompt % ID_BYTES === 0 && response % ID_BYTES === 0;
  const isEven = trace.lossMask.byteLength * ID_BYTES === response && trace.logprobs.byteLength === response;
  if (isWhole && isEven) return;
  const sizes = [prompt, response, trace.lossMask.byteLength, trace.logprobs.byteLength].join(', ');
  throw new Error(`the columns of a trace have ${sizes} bytes, which do not fit together`);
}
