// RenewSession: hears that who has a session open with a lease is there.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { whole } from '../archive/whole.ts';
import type { SchedulerContext } from '../context.ts';
import { unixMs } from '../dispatch/clock.ts';
import { checkOpenAs } from '../domain/external-end.ts';

export function renewSession(
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'renewSession'> {
  const { archive, board, leases } = ctx;
  return {
    async renewSession({ sessionId, attempt }) {
      await whole(ctx, board.find(sessionId)?.task);
      const record = board.find(sessionId)?.record ?? (await archive.session(sessionId));
      if (record === undefined) throw new PolarError('NOT_FOUND', `there is no session ${sessionId}`);
      checkOpenAs(record, attempt);
      leases.renew({ sessionId, attempt }, unixMs());
      return {};
    },
  };
}
