// One session: its records and its trajectory are fetched, and compared.
import type { Client } from '@connectrpc/connect';
import { Outcome, type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import {
  ExportKind,
  type TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { Trajectory } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { asPolarError } from '../../../services/common/errors.ts';
import { hasTrajectory } from '../watching.ts';
import { type Account, type Finding, SessionAudit } from './check.ts';
import type { RecordedCall } from './record.ts';
import { type Origin, originOf } from './rescore.ts';
import type { TraceView } from './trace-view.ts';

export interface AuditedSession extends Account {
  readonly session_id: string;
  readonly task_id: string;
  readonly harness: string;
  readonly attempt: number;
  /** How it ended; its state where it has not. */
  readonly status: string;
  /** Empty where there is no trajectory yet. */
  readonly builder: string;
}

export interface Audited {
  readonly account: AuditedSession;
  readonly traces: readonly TraceView[];
  /** By call id. */
  readonly origins: ReadonlyMap<string, Origin>;
}

type Trajectories = Client<typeof TrajectoryService>;

/** A trajectory that cannot be read is a finding; only what may come again throws. */
export async function auditSession(client: Trajectories, session: Session): Promise<Audited> {
  const { trajectory, lost } = await trajectoryOf(client, session);
  const audit = new SessionAudit(trajectory);
  const origins = new Map<string, Origin>();
  const { sessionId, attempt } = session;
  if (attempt > 0) {
    const asked = { sessionId, kind: ExportKind.RECORDS, attempt: trajectory?.attempt ?? attempt };
    for await (const { line } of client.exportSession(asked)) {
      const call = JSON.parse(line) as RecordedCall;
      audit.add(call);
      origins.set(call.call_id, originOf(call));
    }
  }
  const account = audit.finish();
  const more = [lost, trajectory === undefined ? gone(session, account.calls) : undefined];
  const findings = [...account.findings, ...more.filter((one) => one !== undefined)];
  return { account: { ...headOf(session, trajectory), ...account, findings }, traces: audit.traces, origins };
}

/** Calls that are told of and not there, where no trajectory tells of them: what was not looked at is not clean. */
function gone({ stats }: Session, calls: number): Finding | undefined {
  const missing = (stats?.calls ?? 0) - calls;
  if (missing <= 0) return undefined;
  const why = 'what every consumer has acknowledged is removed after retention.acked_days';
  return { kind: 'records', message: `${missing} of its ${stats?.calls} recorded calls are gone: ${why}` };
}

const headOf = (session: Session, trajectory: Trajectory | undefined) => ({
  session_id: session.sessionId,
  task_id: session.taskId,
  harness: session.harness,
  attempt: trajectory?.attempt ?? session.attempt,
  status: (session.state === SessionState.ENDED
    ? Outcome[session.outcome]
    : SessionState[session.state]
  ).toLowerCase(),
  builder: trajectory?.builder ?? '',
});

/** Undefined where the session has none, or its group has not ended. */
async function trajectoryOf(
  client: Trajectories,
  session: Session,
): Promise<{ readonly trajectory?: Trajectory; readonly lost?: Finding }> {
  if (!hasTrajectory(session)) return {};
  try {
    const { trajectory } = await client.getTrajectory({ sessionId: session.sessionId });
    return trajectory === undefined ? {} : { trajectory };
  } catch (thrown) {
    const { reason, message, retryable } = asPolarError(thrown);
    if (reason === 'NOT_ENDED') return {};
    if (retryable || (reason !== 'BLOB_MISSING' && reason !== 'RECORDS_INVALID')) throw thrown;
    return { lost: { kind: 'trajectory', message: `it cannot be read: ${reason}: ${message}` } };
  }
}
