// Qwen Code: a prompt of 30 KB with the state of the folder in it, a moving max_tokens.
import { qwenCode as adapter } from '../../../services/harness-executor/adapters/qwen-code.ts';
import { type Cli, CONTEXT_TOKENS, of, type Unlike } from './cli.ts';

const BROKEN_OFF: Unlike = {
  traces: 2,
  why: 'it asks to go on behind a text that broke off, and joins the two in its history',
};

const OVERFLOW: Unlike = {
  traces: 2,
  why: 'its request for a summary goes on with the conversation',
};

export const qwen: Cli = {
  name: 'qwen',
  ...of(adapter),
  settings: () => ({ context_window: CONTEXT_TOKENS }),
  resumed: (argv) => [...argv, '--continue'],
  subAgent: (prompt) => ({
    tool: 'agent',
    arguments: {
      description: 'a small part',
      prompt,
      subagent_type: 'general-purpose',
      run_in_background: false,
    },
  }),
  resumption: 'connection dropped mid-response',
  compactsAt: 35_000,
  cannot: {},
  unlike: {
    'overflow-sglang': OVERFLOW,
    'overflow-vllm': OVERFLOW,
    'error-mid-text': BROKEN_OFF,
    'cut-mid-text': BROKEN_OFF,
    'stall-mid-text': BROKEN_OFF,
    resume: { traces: 2, why: 'it renders its system prompt and the list of files anew' },
  },
};
