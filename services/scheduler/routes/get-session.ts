// GetSession: one session.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { SchedulerContext } from '../context.ts';
import { sessionOf } from '../domain/session.ts';

export function getSession({
  board,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'getSession'> {
  return {
    getSession({ sessionId }) {
      const found = board.state.find(sessionId);
      if (found === undefined) throw new PolarError('NOT_FOUND', `there is no session ${sessionId}`);
      return { session: sessionOf(board.state.session(found.task, found.sampleIndex)) };
    },
  };
}
