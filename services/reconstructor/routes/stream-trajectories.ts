import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  Layout,
  type StreamTrajectoriesRequest,
  StreamTrajectoriesRequestSchema,
  StreamTrajectoriesResponseSchema,
  TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type TrajectoryBatch,
  TrajectoryBatchSchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { ByteStream } from '../../common/byte-stream.ts';
import { faulty } from '../../common/config/faults.ts';
import type { FieldFault } from '../../common/errors.ts';
import { TASK_ID_PATTERN } from '../../common/ids.ts';
import { UNACKED_BATCHES_DEFAULT, UNACKED_BATCHES_MAX } from '../../common/limits.ts';
import { giveBack } from '../../common/memory.ts';
import { readRequest } from '../../common/request-faults.ts';
import { fromStored } from '../../common/stored.ts';
import type { ReconstructorContext } from '../context.ts';
import { columnsOf } from '../domain/columns.ts';
import { CONSUMER_PATTERN } from '../domain/cursor.ts';
import type { Offered } from '../domain/offer.ts';
import { field, tracesOf } from '../domain/stored.ts';
import type { StreamRequest } from '../streams/stream-parts.ts';

type Response = MessageInitShape<typeof StreamTrajectoriesResponseSchema>;
const { batch: BATCH, more: MORE } = StreamTrajectoriesResponseSchema.field;

/** For callers of every other kind. */
export const streamTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'streamTrajectories'> => ({
  async *streamTrajectories(message, { signal }) {
    for await (const { head, batches } of parcels(ctx, requestOf(message), signal)) {
      const [batch, ...more] = batches.map((one) => decoded(one, message.layout));
      yield { ...head, ...(batch && { batch, more }) };
    }
  },
});

/** The same for callers by gRPC, or by Connect in binary form: the traces go out as they are stored. */
export const trajectoryBytes = (ctx: ReconstructorContext): ByteStream => ({
  path: `/${TrajectoryService.typeName}/${TrajectoryService.method.streamTrajectories.name}`,
  async *open(bytes, signal) {
    const request = requestOf(readRequest(StreamTrajectoriesRequestSchema, bytes));
    for await (const { head, batches, memory } of parcels(ctx, request, signal)) {
      const own = toBinary(StreamTrajectoriesResponseSchema, create(StreamTrajectoriesResponseSchema, head));
      const all = batches.flatMap((one, i) =>
        field((i === 0 ? BATCH : MORE).number, partsOf(one, request.layout)),
      );
      yield { parts: [own, ...all], onWritten: () => giveBack(memory) };
    }
  },
});

const decoded = (offered: Offered, layout: Layout): TrajectoryBatch =>
  fromStored(TrajectoryBatchSchema, Buffer.concat(partsOf(offered, layout)));

/** The binary form of a batch, in pieces: what is stored is not copied. What is packed stands behind what was not known then. */
function partsOf({ batch, packed }: Offered, layout: Layout): Uint8Array[] {
  if (packed !== undefined) return [toBinary(TrajectoryBatchSchema, batch), packed.body];
  return layout === Layout.COLUMNS ? columnsOf(batch) : tracesOf(batch);
}

interface OpenParcel {
  /** What is said beside the batches. */
  readonly head: Response;
  readonly batches: readonly Offered[];
  /** What the batches' traces lie in, and nothing else does. */
  readonly memory: readonly Uint8Array[];
}

async function* parcels(
  ctx: ReconstructorContext,
  request: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<OpenParcel, void> {
  let seeks = 0n;
  for await (const parcel of ctx.streams.open(request, signal)) {
    const { batches = [], memory = [] } = parcel ?? {};
    // Progress says what was said before.
    seeks = parcel?.seeks ?? seeks;
    yield { head: { seeks, policyVersion: ctx.policy.current }, batches, memory };
  }
}

/** Throws INVALID_REQUEST with every fault. */
function requestOf(message: StreamTrajectoriesRequest): StreamRequest {
  const { consumer, taskId, maxUnacked, maxUnackedTokens, messageTokens, shared, filter } = message;
  const faults: FieldFault[] = [];
  if (!CONSUMER_PATTERN.test(consumer)) {
    faults.push({ field: 'consumer', description: 'must be 1 to 32 of [a-z0-9-]' });
  }
  // It becomes a part of subjects: other letters would be patterns, or commands to NATS.
  if (taskId !== '' && !TASK_ID_PATTERN.test(taskId)) {
    faults.push({ field: 'task_id', description: 'must be one that a task can have, or empty' });
  }
  if (maxUnacked > UNACKED_BATCHES_MAX) {
    faults.push({ field: 'max_unacked', description: `must be 1 to ${UNACKED_BATCHES_MAX}` });
  }
  const prefix = filter?.taskIdPrefix ?? '';
  if (prefix !== '' && !TASK_ID_PATTERN.test(prefix)) {
    faults.push({ field: 'filter.task_id_prefix', description: 'must be the beginning of a task id' });
  }
  const part = filter?.usableFractionMin ?? 0;
  if (!(part >= 0 && part <= 1)) {
    faults.push({ field: 'filter.usable_fraction_min', description: 'must be 0 to 1' });
  }
  // Passed over, batches would come that the trainer does not want. JSON is refused as it is read.
  for (const no of new Set(filter?.$unknown?.map((unknown) => unknown.no))) {
    faults.push({ field: 'filter', description: `has field ${no}, which this version does not know` });
  }
  if (Layout[message.layout] === undefined) {
    faults.push({ field: 'layout', description: 'must be a layout of this version' });
  }
  if (faults.length > 0) throw faulty('INVALID_REQUEST', 'StreamTrajectories', faults);
  const credit = { maxUnacked: maxUnacked || UNACKED_BATCHES_DEFAULT, maxUnackedTokens };
  const layout = message.layout === Layout.COLUMNS ? Layout.COLUMNS : Layout.TRACES;
  return { consumer, taskId, credit, messageTokens, shared, filter, layout };
}
