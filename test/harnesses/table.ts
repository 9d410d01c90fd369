// The table of docs/harnesses.md: what came of each harness in each kind of sandbox.
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { HARNESSES } from '../../services/common/specs/catalogue.ts';
import { ADAPTERS } from '../../services/harness-executor/adapters/index.ts';
import { PLACES } from './places.ts';
import type { Ran } from './solve.ts';

/** A line for each harness; a cell for each kind of sandbox. */
export function tableOf(all: readonly Ran[]): string {
  const head = ['harness', 'version', 'calls', 'traces', 'transcript files', ...PLACES];
  const rows = HARNESSES.map((harness) => {
    const runs = PLACES.flatMap(
      (place) => all.find((one) => one.harness === harness && one.place === place) ?? [],
    );
    return [
      ...[`\`${harness}\``, ADAPTERS[harness].version || '–'],
      both(runs, ({ session }) => session.stats?.calls ?? 0),
      both(runs, ({ session }) => session.stats?.traces ?? 0),
      both(runs, ({ transcripts }) => transcripts),
      ...runs.map(cellOf),
    ];
  });
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('');
}

/** One number where it is the same in each. */
const both = (runs: readonly Ran[], of: (ran: Ran) => number): string =>
  [...new Set(runs.map(of))].join(' / ');

export function cellOf({ session, exitCode }: Ran): string {
  const { outcome, reward, times } = session;
  const seconds = (Number(times?.runMs ?? 0n) / 1000).toFixed(1);
  return `${Outcome[outcome].toLowerCase()}, exit ${exitCode ?? '–'}, reward ${reward ?? '–'}, ${seconds} s`;
}
