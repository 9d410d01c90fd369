// What the scheduler counts, for `/metrics`.
import type { StageTimes } from '../../gen/ts/polar/common/v1/session_pb.js';
import { counter, gauge, histogram, STAGE_SECONDS } from '../common/metrics.ts';
import type { Board } from './dispatch/board.ts';
import { isFailing } from './domain/failing.ts';
import { isHealthy, type NodeState } from './domain/nodes.ts';
import { Outcome, sessionOf } from './domain/session.ts';
import type { SessionChange, TaskState } from './domain/state.ts';

const tasksSubmitted = counter('polar_scheduler_tasks_submitted_total', 'Tasks that were accepted.');
const sessionsSubmitted = counter('polar_scheduler_sessions_submitted_total', 'Sessions of these tasks.');
const sessionsEnded = counter(
  'polar_scheduler_sessions_ended_total',
  'Sessions that ended, by outcome and the reason of their failure.',
  ['outcome', 'reason'],
);
const attemptsLost = counter(
  'polar_scheduler_attempts_lost_total',
  'Attempts that infrastructure ended and that go again, by reason.',
  ['reason'],
);
const stageSeconds = histogram(
  'polar_scheduler_stage_seconds',
  'Time of the last attempt of ended sessions in each stage that it reached.',
  STAGE_SECONDS,
  ['stage'],
);
const rewards = histogram(
  'polar_scheduler_reward',
  'Rewards of ended sessions; sum by count is their mean.',
  [-1, 0, 0.25, 0.5, 0.75, 1],
);
const leading = gauge('polar_scheduler_leading', '1: this scheduler leads; 0: it follows.');
const sessions = gauge('polar_scheduler_sessions', 'Live sessions by state.', ['state']);
const queued = gauge('polar_scheduler_queue_sessions', 'Sessions that wait or run, by queue.', [
  'queue',
  'state',
]);
const nodes = gauge('polar_scheduler_nodes', 'Nodes by state.', ['state']);
const slots = gauge('polar_scheduler_slots', 'Slots of healthy nodes.', ['kind']);

export function taskSubmitted({ record }: TaskState): void {
  tasksSubmitted.inc();
  sessionsSubmitted.inc(record.numSamples);
}

export function sessionEnded({ after }: SessionChange): void {
  const { outcome, failure, times, reward } = sessionOf(after);
  sessionsEnded.inc({ outcome: Outcome[outcome].toLowerCase(), reason: failure?.reason ?? '' });
  if (reward !== undefined) rewards.observe(reward);
  for (const [stage, ms] of stagesOf(times)) if (ms > 0) stageSeconds.observe({ stage }, Number(ms) / 1_000);
}

export const attemptLost = ({ after }: SessionChange): void =>
  attemptsLost.inc({ reason: sessionOf(after).failure?.reason ?? '' });

/** The lead as it is. */
export const showLead = (isLeading: () => boolean): Disposable =>
  leading.from(() => [[{}, Number(isLeading())]]);

/** What the leader holds. */
export function showBoard({ nodes: all, queue, state }: Board): Disposable {
  const shown = new DisposableStack();
  const sum = (of: (node: NodeState) => number, among = [...all.all]): number =>
    among.reduce((total, node) => total + of(node), 0);
  shown.use(
    sessions.from(() => [
      [{ state: 'queued' }, queue.size],
      [{ state: 'preparing' }, sum(({ preparing }) => preparing.size)],
      [{ state: 'ready' }, sum(({ ready }) => ready.size)],
      [{ state: 'running' }, sum(({ running }) => running.size)],
      [{ state: 'finishing' }, sum(({ finishing }) => finishing.size)],
    ]),
  );
  shown.use(
    queued.from(() =>
      queue.shares.all.flatMap(({ name, waiting, running }) => [
        [{ queue: name, state: 'waiting' }, waiting] as const,
        [{ queue: name, state: 'running' }, running] as const,
      ]),
    ),
  );
  const stateOf = (node: NodeState): string => {
    if (!isHealthy(node)) return 'lost';
    if (state.isDraining(node.id)) return 'draining';
    return isFailing(node.failures) ? 'failing' : 'healthy';
  };
  shown.use(
    nodes.from(() =>
      ['healthy', 'draining', 'failing', 'lost'].map((one) => [
        { state: one },
        sum((node) => Number(stateOf(node) === one)),
      ]),
    ),
  );
  shown.use(
    slots.from(() => [
      [{ kind: 'prepare' }, sum(({ heartbeat }) => heartbeat?.prepareSlots ?? 0, all.healthy)],
      [{ kind: 'run' }, sum(({ heartbeat }) => heartbeat?.runSlots ?? 0, all.healthy)],
      [{ kind: 'evaluate' }, sum(({ heartbeat }) => heartbeat?.evaluateSlots ?? 0, all.healthy)],
    ]),
  );
  return shown;
}

const stagesOf = (times: StageTimes | undefined): readonly (readonly [stage: string, ms: bigint])[] =>
  times === undefined
    ? []
    : [
        ['queue', times.queueMs],
        ['prepare', times.prepareMs],
        ['ready', times.readyMs],
        ['run', times.runMs],
        ['build', times.buildMs],
        ['evaluate', times.evaluateMs],
        ['total', times.totalMs],
      ];
