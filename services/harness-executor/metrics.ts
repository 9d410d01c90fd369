// What the harness executor counts, for `/metrics`.
import { counter, histogram, STAGE_SECONDS } from '../common/metrics.ts';

export const runsStarted = counter(
  'polar_harness_executor_runs_started_total',
  'Harnesses that were started.',
  ['harness'],
);
export const runsEnded = counter('polar_harness_executor_runs_ended_total', 'Runs that ended, by outcome.', [
  'outcome',
]);
export const runsFailed = counter(
  'polar_harness_executor_runs_failed_total',
  'Runs that infrastructure, or the task, has ended, by reason.',
  ['reason'],
);
export const runSeconds = histogram(
  'polar_harness_executor_run_seconds',
  'Runs that ended, without the installation of the harness.',
  STAGE_SECONDS,
);
