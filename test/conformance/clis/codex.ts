// Codex: Responses over SSE; keeps its tools few where no feature asks for more.
import { codex as adapter } from '../../../services/harness-executor/adapters/codex.ts';
import { type Cli, CONTEXT_TOKENS, of, type Unlike } from './cli.ts';

const OVERFLOW: Unlike = {
  exitCodes: [1],
  finishes: ['tool_calls'],
  traces: 1,
  says: '',
  why: 'it ends on an overflow, and makes no summary then',
};

export const codex: Cli = {
  name: 'codex',
  ...of(adapter),
  settings: (one) => ({ context_window: CONTEXT_TOKENS, multi_agent: one === 'sub-agents' }),
  resumed: ([program = '', exec = '', ...rest]) => [program, exec, 'resume', '--last', ...rest],
  subAgent: (prompt) => ({
    tool: 'multi_agent_v1__spawn_agent',
    arguments: { message: prompt },
  }),
  waitForSubAgent: {
    tool: 'multi_agent_v1__wait_agent',
    arguments: { targets: ['{{agent_id}}'], timeout_ms: 60_000 },
  },
  compactsAt: CONTEXT_TOKENS - 1_000,
  cannot: {},
  unlike: {
    'overflow-sglang': OVERFLOW,
    'overflow-vllm': OVERFLOW,
    'sub-agents': {
      finishes: ['tool_calls', 'tool_calls', 'tool_calls', 'stop', 'done'],
      why: 'it waits for a sub-agent with a call of its own',
    },
  },
};
