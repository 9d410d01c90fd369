// What a run took, for the shares of queues.
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { HARNESS_INSTALL_MS, STAGE_GRACE_MS } from '../../common/limits.ts';
import { budgetMs } from './budgets.ts';
import { isOpen, SessionState, sessionOf } from './session.ts';

/** What the executor tells and the records' times may differ by: it installs, and its word comes late. Beyond, the clock was set. */
const APART_MS_MAX = 3_600_000;

/** Milliseconds of a run that ends with this change; undefined where none does: what runs elsewhere takes no run slot. */
export function ranMs(before: SessionRecord, after: SessionRecord, spec: TaskSpec): number | undefined {
  const { state, times } = sessionOf(after);
  if (sessionOf(before).state !== SessionState.RUNNING || state === SessionState.RUNNING) return undefined;
  if (isOpen(before)) return undefined;
  const ms = Number(after.stateMs - before.stateMs);
  const told = state === SessionState.FINISHING ? times?.runMs : undefined;
  if (told !== undefined && Math.abs(ms - Number(told)) > APART_MS_MAX) return Number(told);
  // Of one that is lost nobody tells: it had no more than this, whatever the machine slept.
  const most = budgetMs(spec, 'run') + HARNESS_INSTALL_MS + STAGE_GRACE_MS + APART_MS_MAX;
  return Math.max(0, Math.min(ms, most));
}
