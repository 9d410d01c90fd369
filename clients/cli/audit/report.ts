// What an audit found, as text.
import { table } from '../output/table.ts';
import type { Finding } from './check.ts';
import type { HarnessRow } from './harnesses.ts';
import type { NotScored, RescoreRow } from './rescore.ts';
import type { AuditedSession } from './session.ts';

export function auditTable(sessions: readonly AuditedSession[]): string {
  const head = [
    'session',
    'harness',
    'status',
    'calls',
    'sampled',
    'trained',
    'masked',
    'engine',
    'findings',
  ];
  const rows = sessions.map((one) => [
    ...[one.session_id, one.harness, one.status, String(one.calls)],
    ...[one.sampled, one.trained, maskedOf(one), one.engine_usage].map(String),
    String(one.findings.length + one.findings_more),
  ]);
  return table(head, rows);
}

const maskedOf = ({ masked }: Pick<AuditedSession, 'masked'>): number =>
  Object.values(masked).reduce((sum, count) => sum + count, 0);

/** Masked ids of all sessions by reason, and what is not known. */
export function auditNotes(sessions: readonly AuditedSession[]): string[] {
  const masked = new Map<string, number>();
  for (const [reason, count] of sessions.flatMap((one) => Object.entries(one.masked))) {
    masked.set(reason, (masked.get(reason) ?? 0) + count);
  }
  const without = sessions.reduce((sum, one) => sum + one.calls_without_usage, 0);
  const unbuilt = sessions.filter(({ builder }) => builder === '').length;
  return [
    ...(masked.size > 0 ? [`masked: ${reasons(Object.fromEntries([...masked].sort()))}`] : []),
    ...(without > 0 ? [`${without} calls without the engine's count: their ids are taken for it`] : []),
    ...(unbuilt > 0 ? [`${unbuilt} sessions without a trajectory: their records alone are counted`] : []),
  ];
}

const reasons = (masked: Readonly<Record<string, number>>): string =>
  Object.entries(masked)
    .map(([reason, count]) => `${reason} ${count}`)
    .join(', ');

export const findingLines = ({ session_id, findings, findings_more }: AuditedSession): string[] => [
  ...findings.map((finding) => `  ${session_id}: ${finding.kind}: ${placeOf(finding)}${finding.message}`),
  ...(findings_more > 0 ? [`  ${session_id}: ${findings_more} more`] : []),
];

function placeOf({ trace, call_id, index }: Finding): string {
  const parts = [
    ...(call_id === undefined ? [] : [`call ${call_id}`]),
    ...(trace === undefined ? [] : [`trace ${trace}`]),
    ...(index === undefined ? [] : [`index ${index}`]),
  ];
  return parts.length === 0 ? '' : `${parts.join(', ')}: `;
}

export function rescoreTable(rows: readonly RescoreRow[]): string {
  const number = (value: number): string => (value === 0 ? '0' : value.toExponential(1));
  return table(
    ['engine', 'logprobs', 'policy', 'ids', 'mean', 'p50', 'p90', 'p99', 'max', 'largest at'],
    rows.map((row) => [
      ...[row.engine, row.logprob_mode, String(row.policy_version), String(row.ids)],
      ...[row.mean, row.p50, row.p90, row.p99, row.max].map(number),
      `${row.worst.sessionId}: call ${row.worst.callId}, index ${row.worst.index}`,
    ]),
  );
}

/** Further traces that were not scored are counted only. */
const NOT_SCORED_SHOWN = 20;

export function notScoredLines(traces: readonly NotScored[]): string[] {
  if (traces.length === 0) return [];
  const ids = traces.reduce((sum, one) => sum + one.ids, 0);
  return [
    `${traces.length} traces with ${ids} trained ids are not scored`,
    ...traces
      .slice(0, NOT_SCORED_SHOWN)
      .map((one) => `  ${one.session_id}: trace ${one.trace}: ${one.message}`),
    ...(traces.length > NOT_SCORED_SHOWN ? [`  ${traces.length - NOT_SCORED_SHOWN} more`] : []),
  ];
}

export function harnessTable(rows: readonly HarnessRow[]): string {
  const head = [
    'harness',
    'sessions',
    'without',
    'sampled',
    'trained',
    'delivered',
    'uncounted',
    'masked by',
  ];
  return table(
    head,
    rows.map((row) => [
      ...[row.harness, row.sessions, row.without_trajectory, row.sampled, row.trained].map(String),
      row.delivered === null ? '–' : row.delivered.toFixed(4),
      ...[String(row.usage_mismatches), reasons(row.masked) || '–'],
    ]),
  );
}
