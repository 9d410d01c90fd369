// What is asked of every CLI: the commands, the script that the engine plays, and what must come of it.
import type { SomeSwitches } from '../../../examples/scripted-engine/switches.ts';
import type { Cli } from '../clis/cli.ts';

export const CASE_NAMES = [
  'edit',
  'parallel-calls',
  'reasoning',
  'long-output',
  'silence',
  '503-before-head',
  'cut-before-head',
  'stall-before-head',
  'error-mid-text',
  'cut-mid-text',
  'stall-mid-text',
  'error-mid-call',
  'cut-mid-call',
  'stall-mid-call',
  'overflow-sglang',
  'overflow-vllm',
  'compaction',
  'sub-agents',
  'resume',
  'system-first',
] as const;
export type CaseName = (typeof CASE_NAMES)[number];

export interface Expected {
  /** Of each command. */
  readonly exitCodes: readonly number[];
  /** Files of the workspace and what they hold; null: not there. */
  readonly files: Readonly<Record<string, string | null>>;
  /** The finish reason of each record, in the order in which the calls began; `done`: of the last turn of a task. */
  readonly finishes: readonly string[];
  /** Records that are known for a sub-agent's. */
  readonly subs?: number;
  /** What prefix merging makes of them; several where timing decides. */
  readonly traces: number | readonly number[];
  /** Text that the last command shows. */
  readonly says: string;
}

/** A step of a script of the scripted engine, or an aside, in the form of its files. */
export type Step = Readonly<Record<string, unknown>>;

/** A command to the CLI, and what the engine plays for it. */
export interface Command {
  readonly prompt: string;
  steps(cli: Cli, marks: Marks): readonly Step[];
}

/** Words by which the engine knows what a conversation is about. */
export interface Marks {
  /** For a conversation that the case itself begins: a sub-agent's, or one after a summary. */
  readonly other: string;
}

export interface Case {
  readonly name: CaseName;
  /** For the document. */
  readonly what: string;
  readonly engine: 'sglang' | 'vllm';
  /** What that engine has otherwise, beside what scripts say. */
  readonly switches?: SomeSwitches;
  /** Every one after the first resumes. */
  readonly commands: readonly Command[];
  /** What the engine plays where it meets `marks.other`. */
  readonly other?: (cli: Cli) => readonly Step[];
  /** Replies to summaries and the like. */
  readonly asides?: (cli: Cli, marks: Marks) => readonly Step[];
  readonly expected: Expected;
}

export const DONE = 'That is all done.';

/** The last turn of a task. */
export const done = (cli: Cli): Step =>
  cli.farewell === undefined ? { text: DONE } : { text: DONE, calls: cli.farewell };

export const write = (path: string, content: string): Step => ({
  write: { path: `/polar/session/workspace/${path}`, content },
});

const mark = (cli: Cli, { name }: Case, part: string): string => `[${cli.name}/${name}/${part}]`;

/** What the CLI is told in command `n`. */
export const promptOf = (cli: Cli, one: Case, n: number): string =>
  `${mark(cli, one, String(n))} ${one.commands[n]?.prompt}`;

/** The scripts of a case and a CLI: those of its commands, and the one behind `marks.other`. */
export function scriptsOf(cli: Cli, one: Case): object[] {
  const marks: Marks = { other: mark(cli, one, 'other') };
  const asides = one.asides?.(cli, marks) ?? [];
  const script = (when: string, steps: readonly Step[]): object => ({
    when,
    variants: [{ name: 'only', steps }],
    asides,
    after: done(cli),
  });
  const commands = one.commands.map(({ steps }, n) =>
    script(literal(mark(cli, one, String(n))), steps(cli, marks)),
  );
  if (one.other === undefined) return commands.reverse();
  const when = [literal(marks.other), ...(cli.aroundSummary === undefined ? [] : [cli.aroundSummary])];
  return [...commands.reverse(), script(when.join('|'), one.other(cli))];
}

const literal = (text: string): string => text.replaceAll(/[[\]/]/g, '\\$&');
