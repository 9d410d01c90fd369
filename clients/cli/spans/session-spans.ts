// A session as spans: the whole, its attempts, their stages, and the model calls of their runs.
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { type Attempt, Outcome, type Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { type CallSummary, callSpan } from './call-span.ts';
import { type Attributes, double, type Span, type SpanInit, spanOf } from './otlp.ts';

/** Model calls by attempt. */
export type Calls = ReadonlyMap<number, readonly CallSummary[]>;

/** Of one that has ended. */
export function sessionSpans(session: Session, calls: Calls): Span[] {
  const [startMs, endMs] = [msOf(session.createTime), msOf(session.endTime)];
  const whole: SpanInit = {
    ...{ key: 'session', name: `session ${session.harness}`, startMs, endMs },
    attributes: attributesOf(session),
    error: session.failure?.reason,
  };
  const attempts = session.attempts.flatMap((attempt) =>
    attemptSpans(attempt, calls.get(attempt.attempt) ?? [], endMs),
  );
  return [whole, ...attempts].map((span) => spanOf(session.sessionId, span));
}

const msOf = (time: Timestamp | undefined): number => (time === undefined ? 0 : timestampMs(time));

function attributesOf(session: Session): Attributes {
  const { stats } = session;
  return {
    'gen_ai.conversation.id': session.sessionId,
    'polar.session_id': session.sessionId,
    'polar.task_id': session.taskId,
    'polar.group_id': session.groupId,
    'polar.sample_index': session.sampleIndex,
    'polar.harness': session.harness,
    'polar.outcome': (Outcome[session.outcome] ?? '').toLowerCase(),
    'polar.reward': double(session.reward),
    'polar.calls': stats?.calls,
    'polar.traces': stats?.traces,
    'polar.trained_tokens': stats && Number(stats.trainedTokens),
    'polar.sampled_tokens': stats && Number(stats.sampledTokens),
    'error.type': session.failure?.reason,
  };
}

/** It waited before it was dispatched, and that is a part of it, too. */
function attemptSpans(
  { attempt, nodeId, startTime, endTime, times, failure }: Attempt,
  calls: readonly CallSummary[],
  sessionEndMs: number,
): SpanInit[] {
  const key = `attempt ${attempt}`;
  const dispatchedMs = msOf(startTime);
  const spent = (stage: Stage): number => Number(times?.[`${stage}Ms`] ?? 0);
  const whole: SpanInit = {
    ...{ key, parent: 'session', name: key, startMs: dispatchedMs - spent('queue') },
    endMs: endTime === undefined ? sessionEndMs : msOf(endTime),
    attributes: { 'polar.attempt': attempt, 'polar.node_id': nodeId, 'error.type': failure?.reason },
    error: failure?.reason,
  };
  const stages = STAGES.filter((stage) => spent(stage) > 0).map((stage): SpanInit => {
    const startMs = whole.startMs + BEFORE[stage].reduce((sum, one) => sum + spent(one), 0);
    return {
      ...{ key: `${key} ${stage}`, parent: key, name: stage, startMs, endMs: startMs + spent(stage) },
    };
  });
  const inRun = stages.some(({ name }) => name === 'run') ? `${key} run` : key;
  return [whole, ...stages, ...calls.map((call) => callSpan(call, inRun))];
}

const STAGES = ['queue', 'prepare', 'ready', 'run', 'build', 'evaluate'] as const;
type Stage = (typeof STAGES)[number];

const TO_RUN = ['queue', 'prepare', 'ready'] as const;
/** What is over when a stage begins: a session is built and graded at the same time. */
const BEFORE: Readonly<Record<Stage, readonly Stage[]>> = {
  queue: [],
  prepare: ['queue'],
  ready: ['queue', 'prepare'],
  run: TO_RUN,
  build: [...TO_RUN, 'run'],
  evaluate: [...TO_RUN, 'run'],
};
