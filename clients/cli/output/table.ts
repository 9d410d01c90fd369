// Sessions and tasks as text.
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Outcome, type Session, SessionState } from '../../../gen/ts/polar/common/v1/session_pb.js';

/** Columns padded to the widest cell, each of one line; numbers to the right. */
export function table(head: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map((cell) => cell.trim().replace(/\s*[\r\n]\s*/g, ' ')));
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) =>
        /^[\d.\-–]+$/.test(cell) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(head), ...rows.map(line)].join('\n');
}

export const stateName = (session: Session): string =>
  session.state === SessionState.ENDED ? Outcome[session.outcome] : SessionState[session.state];

const seconds = (ms: bigint | undefined): string => (Number(ms ?? 0n) / 1000).toFixed(2);

/** One row a session: what came out and what it took. */
export function sessionTable(sessions: readonly Session[]): string {
  const head = [
    ...['session', 'harness', 'status', 'reward', 'calls', 'traces', 'trained', 'masked'],
    ...['prepare s', 'ready s', 'run s', 'build s', 'evaluate s', 'total s', 'attempt'],
  ];
  const rows = sessions.map((session) => {
    const { stats, times } = session;
    const masked = Object.values(stats?.maskedTokens ?? {}).reduce((sum, count) => sum + count, 0n);
    return [
      ...[session.sessionId, session.harness, stateName(session), session.reward?.toFixed(2) ?? '–'],
      ...[stats?.calls, stats?.traces, stats?.trainedTokens, stats && masked].map((count) =>
        String(count ?? '–'),
      ),
      ...[
        times?.prepareMs,
        times?.readyMs,
        times?.runMs,
        times?.buildMs,
        times?.evaluateMs,
        times?.totalMs,
      ].map(seconds),
      String(session.attempt),
    ];
  });
  return table(head, rows);
}

/** Why sessions failed, one of them below the other; more lines of a message, as of a command's output, stand further in. */
export const failureLines = (sessions: readonly Session[]): string[] =>
  sessions.flatMap(({ sessionId, failure }) => {
    if (failure === undefined) return [];
    const message = failure.message.trimEnd().replaceAll('\n', '\n      ');
    return [`  ${sessionId}: ${failure.reason}: ${message}`];
  });

export const timeOf = (time: Parameters<typeof timestampDate>[0] | undefined): string =>
  time === undefined ? '–' : timestampDate(time).toISOString();

/** Every attempt of a session, the first one on top. */
export function attemptTable({ attempts }: Session): string {
  const rows = attempts.map(({ attempt, nodeId, startTime, endTime, times, failure }) => [
    ...[String(attempt), nodeId, timeOf(startTime), timeOf(endTime)],
    ...[times?.prepareMs, times?.readyMs, times?.runMs].map(seconds),
    failure === undefined ? '–' : `${failure.reason}: ${failure.message.trimEnd().replaceAll(/\n+/g, ' ⏎ ')}`,
  ]);
  return table(['attempt', 'node', 'began', 'ended', 'prepare s', 'ready s', 'run s', 'why it ended'], rows);
}

/** What the sandboxes of a session tried to reach and were not let, a line for each attempt. */
export const deniedLines = ({ attempts }: Session): string[] =>
  attempts.flatMap(({ attempt, denied }) => {
    if (denied === undefined) return [];
    const where = denied.targets.length === 0 ? '' : `: ${denied.targets.join(', ')}`;
    return [`attempt ${attempt}: ${denied.count} connection(s) denied${where}`];
  });

/** `3 completed, 1 cancelled`. */
export const countsOf = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');
