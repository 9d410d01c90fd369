// Whether what was seen is what had to come.
import { isDeepStrictEqual } from 'node:util';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import type { Case, Expected } from './cases/case.ts';
import type { Cli } from './clis/cli.ts';
import type { Seen } from './trial.ts';

const TAIL_CHARS = 1_500;

/** What must come of a case where this CLI is asked. */
function expectedOf(cli: Cli, one: Case): Expected {
  const expected = { ...one.expected, ...cli.unlike[one.name] };
  const finishes = expected.finishes
    .filter((reason) => reason !== 'error' || cli.whole === undefined)
    .map((reason) => (reason === 'done' ? doneBy(cli) : reason));
  return { ...expected, finishes };
}

const doneBy = ({ farewell }: Cli): string => (farewell === undefined ? 'stop' : 'tool_calls');

/** Everything that is otherwise; empty: all is well. */
export function faultsOf(cli: Cli, one: Case, seen: Seen): string[] {
  const expected = expectedOf(cli, one);
  const records = [...seen.records].sort((a, b) => Number(a.startSeq - b.startSeq));
  const faults: string[] = [];
  const same = (what: string, found: unknown, wanted: unknown): void => {
    if (isDeepStrictEqual(found, wanted)) return;
    faults.push(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
  };
  same(
    'exit codes',
    seen.commands.map(({ exitCode }) => exitCode),
    expected.exitCodes,
  );
  same('files', seen.files, expected.files);
  same(
    'finish reasons',
    records.map(({ finishReason }) => finishReason),
    expected.finishes,
  );
  same("sub-agents' records", records.filter(({ role }) => role === 'sub').length, expected.subs ?? 0);
  same('records, as counted by the proxy', seen.counted, records.length);
  if (![expected.traces].flat().includes(seen.traces)) same('traces', seen.traces, expected.traces);
  same('breaches of the laws', seen.breaches, []);
  for (const record of records) {
    const ids = unpackIds(record.sampledIds).length;
    const logprobs = record.logprobs === undefined ? 0 : unpackFloats(record.logprobs).length;
    same(`dialect of ${record.callId}`, record.dialect, cli.dialect);
    same(`logprobs of ${record.callId}`, logprobs, ids);
    if (ids === 0 || record.promptLength === 0) faults.push(`${record.callId} has no ids`);
  }
  const shown = seen.commands.at(-1)?.out ?? '';
  if (!shown.includes(expected.says)) faults.push(`it does not say ${JSON.stringify(expected.says)}`);
  return faults;
}

/** What a person needs to see of a failure. */
export function told({ commands, records }: Seen): string {
  const ends = commands.map(
    ({ exitCode, out, err }) =>
      `exit code ${exitCode}\n--- stdout\n${out.slice(-TAIL_CHARS)}\n--- stderr\n${err.slice(-TAIL_CHARS)}`,
  );
  const calls = records.map(
    ({ role, finishReason, promptLength, errorReason }) =>
      `${role} ${finishReason} ${errorReason} after ${promptLength} ids`,
  );
  return [...ends, '--- records', ...calls].join('\n');
}
