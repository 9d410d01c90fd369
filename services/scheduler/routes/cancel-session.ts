// CancelSession: ends one session; answers when that is committed.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { archivedSessionOf } from '../archive/lookup.ts';
import { whole } from '../archive/whole.ts';
import type { SchedulerContext } from '../context.ts';
import { unixMs } from '../dispatch/clock.ts';
import { cancelled, isEnded, sessionOf } from '../domain/session.ts';

export function cancelSession(
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'cancelSession'> {
  const { archive, board } = ctx;
  return {
    async cancelSession({ sessionId }) {
      await whole(ctx, board.find(sessionId)?.task);
      const found = board.find(sessionId);
      if (found === undefined) return { session: await archivedSessionOf(archive, sessionId) };
      board.journal.admit();
      if (!isEnded(found.record)) {
        const change = board.change(found, cancelled(found.record, unixMs(), 'session'));
        await board.journal.within(change);
      }
      await board.journal.within(board.journal.settled());
      const { task, record } = found;
      return { session: sessionOf(board.state.session(task, sessionOf(record).sampleIndex)) };
    },
  };
}
