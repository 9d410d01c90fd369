// Groups of small trajectories as they are sent, in one message each (ADR 42). What is here can be lost at any time: it is made
// of what lies elsewhere, and who does not find it takes that.
import { crc32 } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { GroupPackSchema } from '../../../gen/ts/polar/event/v1/group_pack_pb.js';
import type { TrajectoryBatch } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { Bus } from '../../common/nats/bus.ts';
import { withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { packSubjectOf } from '../../common/nats/subjects.ts';
import { columnsOf } from '../domain/columns.ts';
import { field } from '../domain/stored.ts';

const STREAM = STREAMS.packs.name;

const PACK = GroupPackSchema.field;

/** A group as it was announced. */
interface Announced {
  readonly subject: string;
  readonly group: Uint8Array;
}

export interface Pack {
  /** Binary form of the batch, without what depends on who gets it, and when. */
  readonly body: Uint8Array;
  /** What it lies in, and nothing else does. */
  readonly memory: Uint8Array;
}

export interface Packs {
  /** Undefined where there is none, or it is of another group, damaged, or cannot be read now. */
  find(of: Announced): Promise<Pack | undefined>;
  /** Stored when it returns, in the place of an older one; the batch's traces are as they are stored. */
  put(of: Announced, batch: TrajectoryBatch, signal: AbortSignal): Promise<void>;
}

export function createPacks(bus: Bus): Packs {
  return {
    async find({ subject, group }) {
      const query = { last_by_subj: packSubjectOf(subject) };
      try {
        const found = bus.reads.usable
          ? await bus.reads.find(STREAM, query)
          : await bus.direct.getMessage(STREAM, query);
        return found && read(found.data, group);
      } catch {
        return undefined;
      }
    },
    async put({ subject, group }, batch, signal) {
      const pack = written(group, batch);
      await withRetry('write pack', signal, () => bus.acks.store(packSubjectOf(subject), pack, {}));
    },
  };
}

function written(group: Uint8Array, batch: TrajectoryBatch): Uint8Array {
  const body = Buffer.concat(columnsOf({ ...batch, batchId: 0n }));
  const head = create(GroupPackSchema, { groupCrc32: crc32(group), bodyCrc32: crc32(body) });
  return Buffer.concat([toBinary(GroupPackSchema, head), ...field(PACK.body.number, [body])]);
}

/** Undefined where it is of another group, or damaged. Throws where it is no pack. */
function read(memory: Uint8Array, group: Uint8Array): Pack | undefined {
  let [groupCrc32, bodyCrc32, body] = [0, 0, memory];
  const reader = new BinaryReader(memory);
  while (reader.pos < reader.len) {
    const [no, wireType] = reader.tag();
    if (no === PACK.groupCrc32.number) groupCrc32 = reader.uint32();
    else if (no === PACK.bodyCrc32.number) bodyCrc32 = reader.uint32();
    else if (no === PACK.body.number) body = reader.bytes();
    else reader.skip(wireType, no);
  }
  return groupCrc32 === crc32(group) && bodyCrc32 === crc32(body) ? { body, memory } : undefined;
}
