// What a fact does to a session. A fact that does not fit the present attempt and state is stale and does nothing.
import { create } from '@bufbuild/protobuf';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type Graded, GradedSchema } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import {
  type Evaluated,
  EvaluatedSchema,
  type Fact,
  type Failed,
  type Ran,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure, REASONS } from '../../common/errors.ts';
import { COMPLETED, completedVerdict } from '../../common/specs/completed.ts';
import {
  attemptLost,
  bounded,
  ended,
  isAbandoned,
  moved,
  needsEvaluation,
  Outcome,
  SessionState,
  sessionOf,
  timesWith,
  withDenied,
} from './session.ts';

/** The next record, or undefined where the fact is stale. */
export function applyFact(
  before: SessionRecord,
  spec: TaskSpec,
  fact: Fact,
  nowMs: number,
): SessionRecord | undefined {
  if (!isOfPresentAttempt(before, fact)) return undefined;
  const record = withDenied(before, fact.denied);
  const { state } = sessionOf(record);
  const { kind, durationMs } = fact;
  switch (kind.case) {
    case 'ready':
      if (state !== SessionState.PREPARING) return undefined;
      return {
        ...moved(record, SessionState.READY, nowMs, { prepareMs: durationMs }),
        runtimeId: kind.value.runtimeId,
        proxyUrl: kind.value.proxyUrl,
      };
    case 'installing':
      if (state !== SessionState.RUNNING || record.installMs > 0n || record.installedMs > 0n)
        return undefined;
      return { ...record, installMs: BigInt(nowMs) };
    case 'installed':
      if (state !== SessionState.RUNNING || record.installedMs > 0n) return undefined;
      return { ...record, installedMs: BigInt(nowMs) };
    case 'ran':
      if (state !== SessionState.RUNNING) return undefined;
      return {
        ...moved(record, SessionState.FINISHING, nowMs, { runMs: openMs(record) ?? durationMs }),
        ran: kind.value,
        ...gradedAtOnce(record, spec, kind.value),
      };
    case 'built':
      if (state !== SessionState.FINISHING || record.built !== undefined) return undefined;
      return joined(
        {
          ...record,
          session: {
            ...sessionOf(record),
            times: timesWith(record, { buildMs: durationMs }),
            ...(kind.value.stats && { stats: kind.value.stats }),
          },
          built: kind.value,
        },
        spec,
        nowMs,
      );
    case 'evaluated':
      if (state !== SessionState.FINISHING || !needsEvaluation(record, spec)) return undefined;
      return evaluated(record, spec, kind.value, durationMs, nowMs);
    case 'failed':
      return failed(record, spec, kind.value, nowMs);
    default:
      return undefined;
  }
}

/** What needs no look at the session is graded with its run: its sandbox can go, and no work is sent. */
function gradedAtOnce(
  record: SessionRecord,
  { evaluator }: TaskSpec,
  { outcome, rewardsFailure }: Ran,
): Pick<SessionRecord, 'evaluated' | 'evaluateFailure'> {
  if (rewardsFailure !== undefined) return { evaluateFailure: bounded(rewardsFailure) };
  const { reward, traceRewards = {} } = record.closed ?? {};
  if (reward !== undefined) {
    const own = Object.entries(traceRewards).map(([callId, one]) => ({ callId, reward: one }));
    return { evaluated: create(EvaluatedSchema, { reward, traceRewards: own }) };
  }
  if (evaluator?.strategy !== COMPLETED || isAbandoned(record)) return {};
  return { evaluated: create(EvaluatedSchema, completedVerdict(outcome)) };
}

/** What an attempt took that was elsewhere: its node saw only its end. */
const openMs = ({ closed, stateMs }: SessionRecord): bigint | undefined =>
  closed && (closed.closeMs > stateMs ? closed.closeMs - stateMs : 0n);

function isOfPresentAttempt(record: SessionRecord, { ref }: Fact): boolean {
  const { attempt, nodeId } = sessionOf(record);
  return (
    ref !== undefined && ref.attempt === attempt && ref.nodeId === nodeId && ref.bootId === record.bootId
  );
}

function evaluated(
  record: SessionRecord,
  spec: TaskSpec,
  verdict: Evaluated,
  durationMs: bigint,
  nowMs: number,
): SessionRecord {
  const wrong = [verdict, ...verdict.traceRewards].find(({ reward = 0 }) => !Number.isFinite(reward));
  if (wrong !== undefined) {
    const why = failure('EVALUATION_FAILED', `the evaluator gave a reward of ${wrong.reward}`);
    return attemptLost(record, why, spec.maxAttempts, nowMs);
  }
  const session = { ...sessionOf(record), times: timesWith(record, { evaluateMs: durationMs }) };
  return joined({ ...record, session, evaluated: verdict, graded: gradedOf(record, verdict) }, spec, nowMs);
}

/** What can be graded again. */
const gradedOf = ({ ran }: SessionRecord, { changes }: Pick<Evaluated, 'changes'>): Graded =>
  create(GradedSchema, { outcome: ran?.outcome ?? Outcome.UNSPECIFIED, ...(changes && { changes }) });

/** ENDED once the trajectory and the verdict are there. */
function joined(record: SessionRecord, spec: TaskSpec, nowMs: number): SessionRecord {
  if (record.built === undefined || needsEvaluation(record, spec)) return record;
  const { ran, evaluateFailure } = record;
  if (evaluateFailure !== undefined) return ended(record, Outcome.TASK_ERROR, nowMs, evaluateFailure);
  return ended(record, ran?.outcome ?? Outcome.COMPLETED, nowMs, ran?.failure);
}

const STAGES: Readonly<Record<string, SessionState>> = {
  prepare: SessionState.PREPARING,
  run: SessionState.RUNNING,
  build: SessionState.FINISHING,
  evaluate: SessionState.FINISHING,
};

function failed(
  record: SessionRecord,
  spec: TaskSpec,
  fact: Failed,
  nowMs: number,
): SessionRecord | undefined {
  const { stage, failure: given } = fact;
  if (sessionOf(record).state !== STAGES[stage]) return undefined;
  if (stage === 'build' && record.built !== undefined) return undefined;
  if (stage === 'evaluate' && !needsEvaluation(record, spec)) return undefined;
  const why = given ?? failure('INTERNAL', `the ${stage} stage failed and did not say why`);
  // The catalogue decides, where it knows the reason; the sender's word counts for reasons of a newer catalogue.
  const known = REASONS[why.reason as keyof typeof REASONS];
  if (known?.infrastructure ?? why.infrastructure) {
    return attemptLost(record, why, spec.maxAttempts, nowMs);
  }
  if (stage === 'evaluate') {
    const graded = gradedOf(record, fact);
    return joined({ ...record, evaluateFailure: bounded(why), graded }, spec, nowMs);
  }
  return ended(record, Outcome.TASK_ERROR, nowMs, why);
}
