// Trajectories as they are stored. Their traces, nearly all of their bytes, are not decoded: protobuf's wire format lets
// them stand, as they are, behind fields that are known only later. Such a trajectory has no `traces`; they lie in
// `$unknown`, where the protobuf library keeps, and writes, what it does not read.
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import {
  type Trace,
  TraceSchema,
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { fromStored } from '../../common/stored.ts';

type Unknown = NonNullable<Trajectory['$unknown']>[number];

/** A trace as it is stored, its length before it. */
export interface StoredTrace extends Unknown {
  /** Fields that were stored elsewhere: they are written behind the others, which stay where they are. */
  readonly more?: Uint8Array;
}

const TRACES = TrajectorySchema.field.traces.number;
const TRAJECTORIES = TrajectoryBatchSchema.field.trajectories.number;
const ID_COLUMNS: readonly number[] = [
  TraceSchema.field.promptIds.number,
  TraceSchema.field.responseIds.number,
];
const ID_BYTES = 4;
const TRACE_TAG = new BinaryWriter().tag(TRACES, WireType.LengthDelimited).finish();

/** What was stored, with its traces as they are. Throws where the bytes are no trajectory. */
export function storedTrajectory(bytes: Uint8Array): Trajectory {
  const reader = new BinaryReader(bytes);
  const traces: Unknown[] = [];
  const head: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [no, wireType] = reader.tag();
    const data = reader.skip(wireType, no);
    if (no === TRACES) traces.push({ no, wireType, data });
    else head.push(bytes.subarray(start, reader.pos));
  }
  const trajectory = fromStored(TrajectorySchema, Buffer.concat(head));
  trajectory.$unknown = traces;
  return trajectory;
}

/** The traces of a stored trajectory, to be set on another. */
export function moveTraces(from: Trajectory, to: Trajectory): Trajectory {
  if (from.$unknown !== undefined) to.$unknown = from.$unknown;
  return to;
}

/** Token ids in the traces of a trajectory, stored or not. */
export const tokensOf = ({ traces, $unknown: stored = [] }: Trajectory): number =>
  traces.reduce((sum, trace) => sum + idsOf(trace), 0) + stored.reduce((sum, one) => sum + idsIn(one), 0);

const idsOf = ({ promptIds, responseIds }: Trace): number =>
  (promptIds.length + responseIds.length) / ID_BYTES;

/** The same of a trace that is not decoded: the lengths of its id columns, behind which nobody looks. */
function idsIn({ data }: Unknown): number {
  const reader = new BinaryReader(data);
  reader.uint32(); // Its own length.
  let bytes = 0;
  for (let left = ID_COLUMNS.length; left > 0 && reader.pos < reader.len; ) {
    const [no, wireType] = reader.tag();
    if (!ID_COLUMNS.includes(no)) {
      reader.skip(wireType, no);
      continue;
    }
    const length = reader.uint32();
    bytes += length;
    reader.pos += length;
    left--;
  }
  return bytes / ID_BYTES;
}

/** The same batch with traces that can be read. */
export const decodedBatch = (batch: TrajectoryBatch): TrajectoryBatch =>
  fromStored(TrajectoryBatchSchema, Buffer.concat(tracesOf(batch)));

/** The binary form of a batch in LAYOUT_TRACES, in pieces: stored traces are not copied. */
export function tracesOf(batch: TrajectoryBatch): Uint8Array[] {
  const head = toBinary(TrajectoryBatchSchema, create(TrajectoryBatchSchema, { ...batch, trajectories: [] }));
  return [head, ...batch.trajectories.flatMap((one) => field(TRAJECTORIES, trajectoryParts(one)))];
}

function trajectoryParts(trajectory: Trajectory): Uint8Array[] {
  const head = toBinary(TrajectorySchema, trajectory, { writeUnknownFields: false });
  return [head, ...storedTraces(trajectory).flatMap(traceParts)];
}

function traceParts({ data, more }: StoredTrace): Uint8Array[] {
  return more === undefined ? [TRACE_TAG, data] : field(TRACES, [contentOf(data), more]);
}

/** Those of its traces that are not decoded. */
export const storedTraces = ({
  $unknown: traces = [],
}: Pick<Trajectory, '$unknown'>): readonly StoredTrace[] => traces;

/** Without the length before it. */
export const contentOf = (data: Uint8Array): Uint8Array => new BinaryReader(data).bytes();

/** Its buffer is kept from one to the next: a new one takes longer than what is written. */
const prefixes = new BinaryWriter();

/** Parts with the tag and length of a message field before them. */
export function field(no: number, parts: readonly Uint8Array[]): Uint8Array[] {
  const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
  return [prefixes.tag(no, WireType.LengthDelimited).uint32(size).finish(), ...parts];
}
