// OpenCode: a native program; titles are a call of their own unless `--title` is given.
import { opencode as adapter } from '../../../services/harness-executor/adapters/opencode.ts';
import { type Cli, CONTEXT_TOKENS, of, REPLY_TOKENS_MAX, type Unlike } from './cli.ts';

const OVERFLOW: Unlike = {
  exitCodes: [1],
  why: 'it makes a summary and goes on, and says with its exit code that there was an error',
};

const BROKEN_OFF: Unlike = {
  traces: [1, 2],
  why: 'a turn that broke off stays in its history, empty, if it went on for a while',
};

export const opencode: Cli = {
  name: 'opencode',
  ...of(adapter),
  settings: () => ({ context_window: CONTEXT_TOKENS, max_tokens: REPLY_TOKENS_MAX, reasoning: true }),
  resumed: (argv) => [...argv, '--continue'],
  subAgent: (prompt) => ({
    tool: 'task',
    arguments: { description: 'a small part', prompt, subagent_type: 'general' },
  }),
  compactsAt: CONTEXT_TOKENS - 5_000,
  aroundSummary: 'Continue if you have next steps',
  cannot: {},
  unlike: {
    'overflow-sglang': OVERFLOW,
    'overflow-vllm': OVERFLOW,
    'error-mid-text': BROKEN_OFF,
    'cut-mid-text': BROKEN_OFF,
    'stall-mid-text': BROKEN_OFF,
    'error-mid-call': BROKEN_OFF,
    'cut-mid-call': BROKEN_OFF,
    'stall-mid-call': BROKEN_OFF,
  },
};
