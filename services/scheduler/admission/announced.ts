// Whether a task that the state does not know was run before: its group is in the trajectory stream for good.
import type { Bus } from '../../common/nats/bus.ts';
import { withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { GROUP_ID } from '../domain/session.ts';
import { isMissing } from '../journal/chain.ts';

export async function wasAnnounced(bus: Bus, taskId: string, signal: AbortSignal): Promise<boolean> {
  const subject = subjects.trajectory(taskId, GROUP_ID);
  return await withRetry('read trajectories', signal, async () => {
    try {
      await bus.direct.getMessage(STREAMS.trajectories.name, { last_by_subj: subject });
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  });
}
