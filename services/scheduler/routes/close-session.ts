// CloseSession: takes how a session ended that was worked on elsewhere; answers when that is committed.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { whole } from '../archive/whole.ts';
import type { SchedulerContext } from '../context.ts';
import { unixMs } from '../dispatch/clock.ts';
import { closedAs, closeFaults } from '../domain/external-end.ts';
import { sessionOf } from '../domain/session.ts';

export function closeSession(
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'closeSession'> {
  const { archive, board } = ctx;
  return {
    async closeSession(request) {
      await whole(ctx, board.find(request.sessionId)?.task);
      const found = board.find(request.sessionId);
      const record = found?.record ?? (await archive.session(request.sessionId));
      if (record === undefined) throw new PolarError('NOT_FOUND', `there is no session ${request.sessionId}`);
      // Of one in the archive: it was told before, and what it was told is compared.
      const faults = closeFaults(request, found?.task.spec.evaluator !== undefined);
      if (faults.length > 0) throw faulty('INVALID_REQUEST', 'the end of the session', faults);
      const next = closedAs(record, request, unixMs());
      if (found === undefined) return { session: sessionOf(record) };
      board.journal.admit();
      if (next !== record) await board.journal.within(board.change(found, next));
      await board.journal.within(board.journal.settled());
      return { session: sessionOf(board.state.session(found.task, sessionOf(record).sampleIndex)) };
    },
  };
}
