// Trajectories to the bytes that are stored. Nearly all of these are columns, which go to their place at once: the protobuf
// library would copy them as its buffer grows, and again behind each length that it learns last.
import { toBinary } from '@bufbuild/protobuf';
import {
  type Trace,
  TraceSchema,
  type Trajectory,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { field } from './stored.ts';

const { promptIds, responseIds, lossMask, logprobs } = TraceSchema.field;
const NOTHING = new Uint8Array();
/** What a trace is without its columns. */
const NO_COLUMNS = { promptIds: NOTHING, responseIds: NOTHING, lossMask: NOTHING, logprobs: NOTHING };

/** The binary form of a trajectory. */
export function encodeTrajectory(trajectory: Trajectory): Uint8Array {
  const head = toBinary(TrajectorySchema, { ...trajectory, traces: [] });
  const { number } = TrajectorySchema.field.traces;
  return Buffer.concat([head, ...trajectory.traces.flatMap((trace) => field(number, traceParts(trace)))]);
}

const traceParts = (trace: Trace): Uint8Array[] => [
  ...column(promptIds.number, trace.promptIds),
  ...column(responseIds.number, trace.responseIds),
  ...column(lossMask.number, trace.lossMask),
  ...column(logprobs.number, trace.logprobs),
  toBinary(TraceSchema, { ...trace, ...NO_COLUMNS }),
];

/** Not written where it is empty, as in the library. */
const column = (no: number, bytes: Uint8Array): Uint8Array[] =>
  bytes.length === 0 ? [] : field(no, [bytes]);
