// What a CLI does all day.
import { type Case, DONE, done, type Step, write } from './case.ts';

const GREETING = 'good evening\n';
const LINES = 600;
const SILENCE_MS = 60_000;

const twoCalls = { exitCodes: [0], finishes: ['tool_calls', 'done'], traces: 1, says: DONE };
const writesOne = { ...twoCalls, files: { 'one.txt': 'one\n' } };
const one = write('one.txt', 'one\n');

export const edit: Case = {
  name: 'edit',
  what: 'reads a file, edits it with its own tools, runs a command, ends',
  engine: 'sglang',
  commands: [
    {
      prompt: 'Change the greeting in greeting.txt.',
      steps: (cli) => [
        { text: 'I will look.', calls: [{ read: '/polar/session/workspace/greeting.txt' }] },
        {
          calls: [
            { edit: { path: '/polar/session/workspace/greeting.txt', old: 'morning', new: 'evening' } },
          ],
        },
        { text: 'Now a copy.', calls: [{ shell: 'cp greeting.txt copy.txt' }] },
        done(cli),
      ],
    },
  ],
  expected: {
    exitCodes: [0],
    files: { 'greeting.txt': GREETING, 'copy.txt': GREETING },
    finishes: ['tool_calls', 'tool_calls', 'tool_calls', 'done'],
    traces: 1,
    says: DONE,
  },
};

export const systemFirst: Case = {
  ...edit,
  name: 'system-first',
  what: '`edit` before a chat template that takes the first message alone for the system, as those of Qwen3.5 and later',
  engine: 'vllm',
  switches: { system_first: true },
};

export const parallelCalls: Case = {
  name: 'parallel-calls',
  what: 'three tool calls in one turn',
  engine: 'vllm',
  commands: [
    {
      prompt: 'Write three files.',
      steps: (cli) => [
        { text: 'At once.', calls: [one, write('two.txt', 'two\n'), write('three.txt', 'three\n')] },
        done(cli),
      ],
    },
  ],
  expected: { ...twoCalls, files: { 'one.txt': 'one\n', 'two.txt': 'two\n', 'three.txt': 'three\n' } },
};

export const reasoning: Case = {
  name: 'reasoning',
  what: 'thinking before a tool call and before the end',
  engine: 'vllm',
  commands: [
    {
      prompt: 'Think, then write one.txt.',
      steps: (cli) => [
        { think: 'One file is wanted.\n\nIts name is one.txt.', text: 'So be it.', calls: [one] },
        { think: 'It is there.', ...done(cli) },
      ],
    },
  ],
  expected: writesOne,
};

export const longOutput: Case = {
  name: 'long-output',
  what: `a text of ${LINES} lines, token by token, and a tool call behind it`,
  engine: 'vllm',
  commands: [
    {
      prompt: 'Tell a long story, then write one.txt.',
      steps: (cli) => [{ text: story(), calls: [one] }, done(cli)],
    },
  ],
  expected: writesOne,
};

const story = (): string => Array.from({ length: LINES }, (_, i) => `${i}. And then it went on.`).join('\n');

export const silence: Case = {
  name: 'silence',
  what: `an engine that says nothing for ${SILENCE_MS / 1000} s before its first token`,
  engine: 'sglang',
  commands: [
    {
      prompt: 'Write one.txt, slowly.',
      steps: (cli) => [{ calls: [one], switches: { first_token_ms: SILENCE_MS } }, done(cli)],
    },
  ],
  expected: writesOne,
};

export const resume: Case = {
  name: 'resume',
  what: 'a second command that goes on with the session of the first',
  engine: 'sglang',
  commands: [
    { prompt: 'Write one.txt.', steps: (cli) => [{ calls: [one] }, done(cli)] },
    { prompt: 'Now two.txt.', steps: (cli) => [{ calls: [write('two.txt', 'two\n')] }, done(cli)] },
  ],
  expected: {
    exitCodes: [0, 0],
    files: { 'one.txt': 'one\n', 'two.txt': 'two\n' },
    finishes: ['tool_calls', 'done', 'tool_calls', 'done'],
    traces: 1,
    says: DONE,
  },
};

export const subAgents: Case = {
  name: 'sub-agents',
  what: 'a sub-agent does a part',
  engine: 'vllm',
  commands: [
    {
      prompt: 'Let another agent write one.txt.',
      steps: (cli, { other }) => [
        { text: 'I hand it on.', calls: callsOf(cli.subAgent?.(`${other} Write one.txt.`)) },
        ...(cli.waitForSubAgent === undefined ? [] : [{ calls: [cli.waitForSubAgent] }]),
        done(cli),
      ],
    },
  ],
  other: ({ subAgentEnd }) => [{ calls: [one] }, { text: 'It is written.', calls: callsOf(subAgentEnd) }],
  expected: {
    exitCodes: [0],
    files: { 'one.txt': 'one\n' },
    finishes: ['tool_calls', 'tool_calls', 'stop', 'done'],
    subs: 2,
    traces: 2,
    says: DONE,
  },
};

const callsOf = (call: Step | undefined): Step[] => (call === undefined ? [] : [call]);
