// How long the stages of a task may take.
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { HARNESS_INSTALL_MS, LEASE_MARGIN_MS, LEASE_MAX_MS } from '../../common/limits.ts';
import { changeMs, isOpen, needsEvaluation, SessionState, sessionOf } from './session.ts';

/** `close` ends a run that is elsewhere. */
export type Stage = 'prepare' | 'run' | 'close' | 'build' | 'evaluate';
/** Stages, and waiting: for a node in `queue`, for a run slot in `ready`, for the harness in `install`. */
export type Clock = Stage | 'queue' | 'ready' | 'install';

/** Longer than a proxy or an executor is away as a rule: nothing but the session waits for it, and nobody can run that again. */
export const CLOSE_MS = 600_000;

/** Budget of a stage; a completed spec has all but `queue`. Those of `install` and `close` are limits of their own. */
export function budgetMs(spec: TaskSpec, stage: Clock): number {
  if (stage === 'install') return HARNESS_INSTALL_MS;
  if (stage === 'close') return CLOSE_MS;
  const budget = spec.budgets?.[stage];
  return budget === undefined ? 0 : Math.ceil(durationMs(budget));
}

/** Lease of the run's sandbox: every stage that uses it, and the wait between them. */
export const leaseMs = (spec: TaskSpec): number =>
  Math.min(
    LEASE_MAX_MS,
    budgetMs(spec, 'prepare') +
      budgetMs(spec, 'ready') +
      budgetMs(spec, 'run') +
      budgetMs(spec, 'evaluate') +
      LEASE_MARGIN_MS,
  );

/** The stages that an attempt is in; waiting in QUEUED or READY is none, nor is what goes on elsewhere. */
export function stagesOf(record: SessionRecord, spec: TaskSpec): Stage[] {
  switch (sessionOf(record).state) {
    case SessionState.PREPARING:
      return ['prepare'];
    case SessionState.RUNNING:
      if (isOpen(record)) return record.closed === undefined ? [] : ['close'];
      return ['run'];
    case SessionState.FINISHING: {
      const stages: Stage[] = record.built === undefined ? ['build'] : [];
      return needsEvaluation(record, spec) ? [...stages, 'evaluate'] : stages;
    }
    default:
      return [];
  }
}

/** Whether a run has its slot and waits for its harness. */
export const isInstalling = (record: SessionRecord): boolean =>
  sessionOf(record).state === SessionState.RUNNING && record.installMs > 0n && record.installedMs === 0n;

/** The clocks that run for a session; waiting has one where the spec limits it. */
export function clocksOf(record: SessionRecord, spec: TaskSpec): Clock[] {
  const { state } = sessionOf(record);
  if (isInstalling(record)) return ['install'];
  if (state === SessionState.READY && spec.budgets?.ready !== undefined) return ['ready'];
  if (state === SessionState.QUEUED && spec.budgets?.queue !== undefined) return ['queue'];
  if (isOpen(record) && record.closed === undefined) return ['run'];
  return stagesOf(record, spec);
}

/** Since when a clock runs that began with a change of the session; Unix time in milliseconds. */
export function sinceMs(record: SessionRecord, clock: Clock): number {
  const { stateMs, installMs, installedMs } = record;
  if (clock === 'install') return Number(installMs);
  if (clock === 'close') return changeMs(record);
  return Number(clock === 'run' && installedMs > 0n ? installedMs : stateMs);
}

/** Stages that the later record is in and the earlier one is not. */
export function newStages(before: SessionRecord, after: SessionRecord, spec: TaskSpec): Stage[] {
  const sameAttempt = sessionOf(before).attempt === sessionOf(after).attempt;
  const old = sameAttempt ? stagesOf(before, spec) : [];
  return stagesOf(after, spec).filter((stage) => !old.includes(stage));
}
