// What a trainer does not want, judged when a batch is sent. Nothing goes without a name: see StreamFilter.
import type { StreamFilter } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';

/** What the rules look at in a trajectory. */
export interface SessionView {
  readonly reward?: number | undefined;
  /** What each of its traces counts with. */
  readonly traceRewards: () => readonly number[];
  readonly policyVersionMin: bigint;
  readonly policyVersionMax: bigint;
  /** Token ids in its traces. */
  readonly tokens: number;
}

/** Reasons for dropping; empty: kept. */
export interface Verdict {
  readonly group: string;
  /** One for each session. */
  readonly sessions: readonly string[];
  /** Token ids of what is kept. */
  readonly tokens: number;
}

/** What the rules look at in a group. */
export interface GroupView {
  readonly taskId: string;
  readonly sessions: readonly SessionView[];
}

/** Whose group it is first, then rules for sessions, then those for the group, which see what is left. */
export function judge(
  filter: StreamFilter | undefined,
  policyVersion: bigint,
  { taskId, sessions }: GroupView,
): Verdict {
  if (!taskId.startsWith(filter?.taskIdPrefix ?? '')) {
    return { group: 'other_task', sessions: sessions.map(() => ''), tokens: 0 };
  }
  const reasons = sessions.map((session) => sessionRule(filter, policyVersion, session));
  const left = sessions.filter((session, index) => reasons[index] === '' && session.tokens > 0);
  const anyDropped = reasons.some((reason) => reason !== '');
  const group = anyDropped && left.length === 0 ? 'sessions_dropped' : groupRule(filter, sessions, left);
  return { group, sessions: reasons, tokens: group === '' ? tokensOf(left) : 0 };
}

const tokensOf = (sessions: readonly SessionView[]): number =>
  sessions.reduce((sum, session) => sum + session.tokens, 0);

function sessionRule(filter: StreamFilter | undefined, policyVersion: bigint, session: SessionView): string {
  if (filter === undefined || session.tokens === 0) return '';
  const { policyVersionMin: min, policyVersionMax: max } = session;
  if (filter.stalenessMax !== undefined && policyVersion - min > filter.stalenessMax) return 'stale';
  if (filter.policySpanMax !== undefined && max - min > filter.policySpanMax) return 'policy_span';
  return '';
}

/** No session is better than another one, nor any of their traces. */
const isAlike = (sessions: readonly SessionView[]): boolean =>
  sessions.length < 2 || new Set(sessions.flatMap((session) => session.traceRewards())).size < 2;

function groupRule(
  filter: StreamFilter | undefined,
  sessions: readonly SessionView[],
  left: readonly SessionView[],
): string {
  if (filter === undefined) return '';
  const usable = left.filter((session) => session.reward !== undefined);
  if (sessions.length > 0 && usable.length / sessions.length < filter.usableFractionMin) {
    return 'usable_fraction';
  }
  if (filter.dropZeroVariance && isAlike(usable)) return 'zero_variance';
  if (filter.groupTokensMax > 0n && tokensOf(left) > Number(filter.groupTokensMax)) return 'group_tokens';
  return '';
}
