// Gemini CLI: generateContent over SSE; a broken socket in a stream ends it.
import { geminiCli as adapter } from '../../../services/harness-executor/adapters/gemini-cli.ts';
import { type Cli, of, type Unlike } from './cli.ts';

/** What it takes an unknown model for; there is no setting. */
const WINDOW = 1_048_576;

const OVERFLOW: Unlike = {
  exitCodes: [1],
  finishes: ['tool_calls'],
  traces: 1,
  says: '',
  why: 'it ends on an overflow, and makes no summary then',
};

export const gemini: Cli = {
  name: 'gemini',
  ...of(adapter),
  settings: (one) => (one === 'compaction' ? { compression_threshold: 5_000 / WINDOW } : {}),
  resumed: (argv) => [...argv, '--resume', 'latest'],
  subAgent: (prompt) => ({ tool: 'invoke_agent', arguments: { agent_name: 'generalist', prompt } }),
  subAgentEnd: { tool: 'complete_task', arguments: { result: { response: 'It is written.' } } },
  cannot: {},
  unlike: {
    'overflow-sglang': OVERFLOW,
    'overflow-vllm': OVERFLOW,
    compaction: {
      finishes: ['tool_calls', 'stop', 'tool_calls', 'stop', 'stop', 'done'],
      traces: 5,
      why: 'it asks for a summary and then for a better one',
    },
    'sub-agents': {
      finishes: ['tool_calls', 'tool_calls', 'tool_calls', 'done'],
      why: 'a sub-agent ends with a tool call',
    },
    resume: { traces: 2, why: 'it renders the list of files at the head of the conversation anew' },
  },
};
