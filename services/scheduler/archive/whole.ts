// Waiting for a task that a kill left half in memory: the archiver brings its other sessions back, which have ended.
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import type { SchedulerContext } from '../context.ts';
import { isTorn, type TaskState } from '../domain/state.ts';

const LOOK_MS = 20;

/** Resolves once the task has all its sessions, or is gone. Throws NATS_UNAVAILABLE after RPC_TIMEOUT_MS. */
export async function whole({ board, signal }: SchedulerContext, task: TaskState | undefined): Promise<void> {
  const until = performance.now() + RPC_TIMEOUT_MS;
  while (task !== undefined && isTorn(task) && board.state.tasks.get(task.record.taskId) === task) {
    if (signal.aborted || performance.now() > until) {
      const { taskId } = task.record;
      throw new PolarError('NATS_UNAVAILABLE', `${taskId} is coming back from the archive; call again`);
    }
    await sleep(LOOK_MS, signal);
  }
}
