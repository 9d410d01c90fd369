// A context that is full: an engine that refuses the prompt, and a harness that makes it shorter in time.
import { type Cli, CONTEXT_TOKENS } from '../clis/cli.ts';
import { type Case, DONE, done, type Marks, type Step, write } from './case.ts';

/** Requests for a summary: without tools, or with the demand to use none. */
const summaries = (_: Cli, { other }: Marks): Step[] => {
  const text = `<summary><state_snapshot>${other} one.txt is written.</state_snapshot></summary>`;
  return [
    { tools: false, text },
    { last: 'TEXT ONLY|Do not call tools', text },
  ];
};

const nearTheWindow = ({ compactsAt = 0 }: Cli): Step => ({ prompt_tokens_told: compactsAt });

const one = write('one.txt', 'one\n');
const full = { error_every: 1, error_status: 400 };

export const overflows: readonly Case[] = (['sglang', 'vllm'] as const).map((engine) => ({
  name: `overflow-${engine}`,
  what: `a prompt that is too long, refused in the words of ${engine}`,
  engine,
  commands: [
    {
      prompt: 'Write one.txt.',
      steps: () => [{ calls: [one] }, { text: 'never said', switches: full }],
    },
  ],
  asides: summaries,
  other: (cli) => [done(cli)],
  expected: {
    exitCodes: [0],
    files: { 'one.txt': 'one\n' },
    finishes: ['tool_calls', 'stop', 'done'],
    traces: 3,
    says: DONE,
  },
}));

export const compaction: Case = {
  name: 'compaction',
  what: `usage near the window of ${CONTEXT_TOKENS} tokens, a summary, and the work after it`,
  engine: 'vllm',
  commands: [
    {
      prompt: 'Write one.txt.',
      steps: (cli) => [
        { calls: [one], switches: nearTheWindow(cli) },
        { ...done(cli), switches: nearTheWindow(cli) },
      ],
    },
    { prompt: 'Now two.txt.', steps: (cli) => [{ calls: [write('two.txt', 'two\n')] }, done(cli)] },
  ],
  asides: summaries,
  other: (cli) => [done(cli)],
  expected: {
    exitCodes: [0, 0],
    files: { 'one.txt': 'one\n', 'two.txt': 'two\n' },
    finishes: ['tool_calls', 'stop', 'done', 'tool_calls', 'done'],
    traces: 3,
    says: DONE,
  },
};
