// GetSession: one session and, where it waits, why.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { archivedSessionOf } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { sessionOf } from '../domain/session.ts';
import { isTorn } from '../domain/state.ts';
import { waitingOf } from '../domain/waiting.ts';

export function getSession({
  archive,
  board,
  surroundings,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'getSession'> {
  return {
    async getSession({ sessionId }) {
      const found = board.state.find(sessionId);
      if (found === undefined || isTorn(found.task))
        return { session: await archivedSessionOf(archive, sessionId) };
      const record = board.state.session(found.task, found.sampleIndex);
      const waiting = waitingOf(record, found.task.spec, surroundings());
      return { session: sessionOf(record), ...(waiting && { waiting }) };
    },
  };
}
