// Which groups are worth a pack: many small trajectories, each of which would be a read of its own.
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { BlobRefSchema } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import { GroupReadySchema, SessionResultSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';

/** Of the trajectories of a group; a pack is one message of NATS, which has 1 MiB at most. */
const PACK_BYTES_MAX = 768 * 1024;
/** Of one of them, on average: above, reads are a small part of what it costs to send it. */
const PACKED_TRAJECTORY_BYTES_MAX = 64 * 1024;

/** Of the trajectories that it would hold; undefined: it is not worth one. `group` is a GroupReady. */
export function packableBytes(group: Uint8Array): number | undefined {
  const sizes = sizesIn(group);
  const sizeBytes = sizes.reduce((sum, one) => sum + one, 0);
  const isSmall = sizeBytes <= Math.min(PACK_BYTES_MAX, sizes.length * PACKED_TRAJECTORY_BYTES_MAX);
  return sizes.length > 1 && isSmall ? sizeBytes : undefined;
}

const SESSIONS = GroupReadySchema.field.sessions.number;
const TRAJECTORY = SessionResultSchema.field.trajectory.number;
const SIZE_BYTES = BlobRefSchema.field.sizeBytes.number;

/** Of the stored trajectories of a group. It is looked at each time that the group is sent: nothing else is decoded. */
function sizesIn(group: Uint8Array): number[] {
  const sizes: number[] = [];
  const reader = new BinaryReader(group);
  within(reader, reader.len, SESSIONS, (session) =>
    within(reader, session, TRAJECTORY, (ref) => {
      while (reader.pos < ref) {
        const [no, wireType] = reader.tag();
        if (no === SIZE_BYTES) sizes.push(Number(reader.uint64()));
        else skip(reader, no, wireType);
      }
    }),
  );
  return sizes;
}

/** Calls `inside` at each message in that field of the one up to `end`, with its end; it reads up to there. */
function within(reader: BinaryReader, end: number, field: number, inside: (end: number) => void): void {
  while (reader.pos < end) {
    const [no, wireType] = reader.tag();
    if (no === field && wireType === WireType.LengthDelimited) inside(endOf(reader));
    else skip(reader, no, wireType);
  }
}

/** The library's makes an array of what it skips. */
function skip(reader: BinaryReader, no: number, wireType: WireType): void {
  if (wireType === WireType.LengthDelimited) reader.pos = endOf(reader);
  else reader.skip(wireType, no);
}

/** Of the bytes that come next, behind their length. */
function endOf(reader: BinaryReader): number {
  const size = reader.uint32();
  return reader.pos + size;
}
