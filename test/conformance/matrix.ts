// docs/conformance.md, as a run writes it.
import { CASE_NAMES, type Case } from './cases/case.ts';
import type { Cli } from './clis/cli.ts';

/** How a trial ended. */
export interface Result {
  readonly cli: Cli;
  readonly one: Case;
  /** Empty: all was as it had to be. */
  readonly faults: readonly string[];
  readonly ms: number;
  readonly calls: number;
  readonly traces: number;
}

const HEAD = `# Conformance

\`\`\`
npm run test:conformance
\`\`\`

installs the CLIs below in the versions named, runs each of them on each case, and writes this page. \`-- --cli pi,qwen
--case edit\` chooses, and with \`--renew\` writes those cells; \`--jobs N\` sets how many run at once, \`--logs DIR\` keeps
what each did and what was recorded. \`npm test\` runs case \`edit\` of every CLI, and a fault with one CLI of each dialect.

A trial is a black box: the CLI as its package registry has it, in a bubblewrap sandbox of runtime-prewarm whose only
network is the LLM proxy, a process of its own on a real NATS. Behind it the scripted engine stands for SGLang or vLLM.
Asserted are the exit codes, the files, what the CLI says; the number of recorded calls, their finish reasons, dialect,
ids and logprobs, and the count when the session is closed; the traces built from them; and the laws, by \`laws.py\`.`;

/** The whole page; a cell that was not tried stays as it is in `before`, of the same version of its CLI. */
export function page(
  clis: readonly Cli[],
  cases: readonly Case[],
  results: readonly Result[],
  note: string,
  before: string,
): string {
  const rows = table(clis, cases, results, cellsIn(before));
  const count = (pattern: RegExp): number => [...rows.matchAll(pattern)].length;
  const passed = `${count(/\| ok/g)} of ${count(/\| (ok|\*\*failed|not run)/g)} trials passed.`;
  return `${[
    HEAD,
    `## Results\n\n${passed} ${note}`,
    'A cell: outcome, time (beside other trials, on a shared machine), recorded calls / traces. `*`: otherwise than in most\nCLIs, see below. `–`: cannot be, see below.',
    rows,
    `## What ends otherwise than in most CLIs\n\n${notes(clis, ({ unlike }, name) => unlike[name]?.why)}`,
    `## What a CLI cannot do\n\n${notes(clis, ({ cannot }, name) => cannot[name])}`,
    `## Cases\n\n${cases.map(caseLine).join('\n')}`,
  ].join('\n\n')}\n`;
}

/** The row of a table that names the CLIs and their versions. */
export const headRow = (clis: readonly Cli[]): string =>
  `| case |${clis.map((cli) => ` ${columnOf(cli)} |`).join('')}`;

const columnOf = ({ name, version }: Cli): string => `${name} ${version}`;

/** What a case is. */
export const caseLine = ({ name, what, engine }: Case): string => `- \`${name}\` (as ${engine}): ${what}.`;

/** The cells of a page by column and row. */
function cellsIn(text: string): Map<string, string> {
  const rows = text
    .split('\n')
    .filter((line) => /^\| [\w-]+ \|/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const columns = rows[0] ?? [];
  return new Map(rows.flatMap((row) => row.map((cell, i) => [`${columns[i]} ${row[1]}`, cell] as const)));
}

function table(
  clis: readonly Cli[],
  cases: readonly Case[],
  results: readonly Result[],
  before: ReadonlyMap<string, string>,
): string {
  const cell = (cli: Cli, one: Case): string => {
    if (cli.cannot[one.name] !== undefined) return '–';
    const result = results.find((found) => found.cli === cli && found.one === one);
    if (result === undefined) return before.get(`${columnOf(cli)} ${one.name}`) ?? 'not run';
    const { faults, ms, calls, traces } = result;
    const star = cli.unlike[one.name] === undefined ? '' : '*';
    const outcome = faults.length === 0 ? `ok${star}` : '**failed**';
    return `${outcome} ${(ms / 1000).toFixed(1)} s ${calls}/${traces}`;
  };
  const rows = cases.map((one) => `| ${one.name} |${clis.map((cli) => ` ${cell(cli, one)} |`).join('')}`);
  return [headRow(clis), `|---|${clis.map(() => '---|').join('')}`, ...rows].join('\n');
}

/** One line for each CLI and reason, with the cases that it is the reason of. */
function notes(clis: readonly Cli[], of: (cli: Cli, name: Case['name']) => string | undefined): string {
  const lines = clis.flatMap((cli) => {
    const byReason = Map.groupBy(CASE_NAMES, (name) => of(cli, name));
    return [...byReason]
      .filter(([why]) => why !== undefined)
      .map(([why, names]) => `- ${cli.name}, ${names.map((name) => `\`${name}\``).join(', ')}: ${why}.`);
  });
  return lines.join('\n');
}
