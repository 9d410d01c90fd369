// Routed experts are beside what is trained, and many times as large: a group that is too large for a batch goes out
// without some of them before it is given up. Stored trajectories are cut as bytes, as stored.ts reads them.
import { create } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { SessionStatsSchema } from '../../../gen/ts/polar/common/v1/session_pb.js';
import {
  TraceSchema,
  type Trajectory,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { fieldsIn } from './fields.ts';
import { field } from './stored.ts';

const TRACES = TrajectorySchema.field.traces.number;
const { routedExperts: EXPERTS, spans: SPANS } = TraceSchema.field;

export interface Kept {
  /** In memory of their own where something was left out. */
  readonly bytes: Uint8Array;
  /** Calls of the traces whose routed experts were left out. */
  readonly calls: number;
}

/** What is kept of the trajectories of a group, one after another: the first ones lose theirs until the rest fits. */
export class Fitting {
  #excessBytes: number;

  constructor(sizeBytes: number, bytesMax: number) {
    this.#excessBytes = sizeBytes - bytesMax;
  }

  keep(stored: Uint8Array): Kept {
    if (this.#excessBytes <= 0) return { bytes: stored, calls: 0 };
    const kept = withoutExperts(stored);
    this.#excessBytes -= stored.byteLength - kept.bytes.byteLength;
    return kept;
  }
}

/** A stored trajectory without the routed experts of its traces. Throws where the bytes are no trajectory. */
export function withoutExperts(stored: Uint8Array): Kept {
  const parts: Uint8Array[] = [];
  let calls = 0;
  for (const { no, wireType, data, bytes } of fieldsIn(stored)) {
    if (no !== TRACES || wireType !== WireType.LengthDelimited) parts.push(bytes);
    else {
      const fields = [...fieldsIn(new BinaryReader(data).bytes())];
      const rest = fields.filter((one) => one.no !== EXPERTS.number);
      if (rest.length < fields.length) calls += fields.filter((one) => one.no === SPANS.number).length;
      parts.push(
        ...field(
          TRACES,
          rest.map((one) => one.bytes),
        ),
      );
    }
  }
  return { bytes: Buffer.concat(parts), calls };
}

/** Counts calls whose routed experts were left out. */
export function countDropped(trajectory: Trajectory, calls: number): Trajectory {
  if (calls === 0) return trajectory;
  const { expertsDropped = {}, ...stats } = trajectory.stats ?? create(SessionStatsSchema);
  const { too_large: before = 0 } = expertsDropped;
  trajectory.stats = { ...stats, expertsDropped: { ...expertsDropped, too_large: before + calls } };
  return trajectory;
}
