import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  type SeekConsumerRequest,
  SeekTarget,
  type TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import type { ReconstructorContext } from '../context.ts';
import { changeCursor } from '../cursors/named-consumer.ts';
import { floorOf, sought } from '../domain/cursor.ts';
import { consumerSought } from '../events.ts';

export const seekConsumer = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'seekConsumer'> => ({
  async seekConsumer({ consumer, to }, { signal }) {
    const floor = BigInt(await floorAt(ctx, to, signal));
    const cursor = await changeCursor(ctx, consumer, (known) => sought(known, floor), signal);
    consumerSought(ctx.log, consumer, Number(floor));
    return { floor: floorOf(cursor) };
  },
});

/** The batch id before the place. Throws SEEK_OUT_OF_RANGE. */
async function floorAt(
  { trajectories }: ReconstructorContext,
  to: SeekConsumerRequest['to'],
  signal: AbortSignal,
): Promise<number> {
  const { first, last } = await trajectories.range(signal);
  switch (to.case) {
    case 'target':
      if (to.value === SeekTarget.OLDEST) return first - 1;
      if (to.value === SeekTarget.NEWEST) return last;
      break;
    case 'batchId':
      if (to.value >= first && to.value <= last + 1) return Number(to.value) - 1;
      throw new PolarError('SEEK_OUT_OF_RANGE', `batch_id must be ${first} to ${last + 1}`);
    case 'time': {
      const time = timestampDate(to.value);
      if (time.getTime() <= Date.now()) return (await trajectories.firstAt(time, signal)) - 1;
      throw new PolarError('SEEK_OUT_OF_RANGE', 'time must not be in the future');
    }
  }
  const description = 'must be oldest, newest, a batch id or a time';
  throw faulty('INVALID_REQUEST', 'SeekConsumer', [{ field: 'to', description }]);
}
