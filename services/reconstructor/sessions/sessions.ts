// Looks sessions up: the scheduler knows where they stand, the trajectory stream what became of them.
import { type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { StrategySpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { GroupReady, SessionResult } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { AskScheduler } from '../../common/ask-scheduler.ts';
import { PolarError } from '../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import type { TrajectoryLog } from '../streams/trajectory-log.ts';

export interface Sessions {
  /** Throws NOT_FOUND. */
  get(sessionId: string, signal: AbortSignal): Promise<Session>;
  /** How it ended and where its trajectory is. Throws NOT_ENDED while it or its group has not. */
  ended(
    session: Session,
    signal: AbortSignal,
  ): Promise<{ readonly group: GroupReady; readonly result: SessionResult }>;
  /** Its task's builder; undefined for the default. */
  builder(session: Session, signal: AbortSignal): Promise<StrategySpec | undefined>;
}

export function createSessions(ask: AskScheduler, log: TrajectoryLog): Sessions {
  const options = (signal: AbortSignal) => ({ signal, timeoutMs: RPC_TIMEOUT_MS });
  return {
    async get(sessionId, signal) {
      const { session } = await ask(
        (scheduler) => scheduler.getSession({ sessionId }, options(signal)),
        signal,
      );
      if (session === undefined) throw new PolarError('NOT_FOUND', `no session ${sessionId}`);
      return session;
    },
    async ended(session, signal) {
      const { sessionId, taskId, groupId, state } = session;
      if (state !== SessionState.ENDED) throw notEnded(session);
      const stored = await log.ofGroup(taskId, groupId, signal);
      const group = await stored?.read(signal);
      const result = group?.sessions.find((one) => one.sessionId === sessionId);
      if (group === undefined || result === undefined) throw groupNotEnded(session);
      return { group, result };
    },
    async builder({ taskId }, signal) {
      const { task } = await ask((scheduler) => scheduler.getTask({ taskId }, options(signal)), signal);
      return task?.spec?.builder;
    },
  };
}

const notEnded = ({ sessionId, state }: Session): PolarError =>
  new PolarError(
    'NOT_ENDED',
    `session ${sessionId} has not ended: it is ${SessionState[state]?.toLowerCase()}`,
  );

const groupNotEnded = ({ sessionId, taskId, groupId }: Session): PolarError =>
  new PolarError(
    'NOT_ENDED',
    `session ${sessionId} has ended, but not all sessions of its group ${groupId} of task ${taskId} have: its trajectory is there when they have; its calls can be exported now. Or the group is gone, since every consumer has acknowledged it and retention.acked_days are over`,
  );
