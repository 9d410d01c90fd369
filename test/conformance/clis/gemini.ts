// Gemini CLI: generateContent over SSE; a broken socket in a stream ends it.
import { NODE_MOUNT } from '../../../services/harness-executor/adapters/adapter.ts';
import { type Cli, MODEL, type Unlike } from './cli.ts';

const VERSION = '0.61.0';

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
  version: VERSION,
  dialect: 'google-generate',
  install: {
    npm: {
      name: '@google/gemini-cli',
      version: VERSION,
      entry: 'node_modules/@google/gemini-cli/bundle/gemini.js',
    },
  },
  files: (ask) => ({
    '.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      ...(ask.case === 'compaction' && { model: { compressionThreshold: 5_000 / WINDOW } }),
      general: { disableAutoUpdate: true },
    }),
  }),
  command({ prompt, resume, url, capability }, program) {
    return {
      argv: [
        `${NODE_MOUNT}/bin/node`,
        program,
        ...['-m', MODEL, '--yolo', '--skip-trust'],
        ...(resume ? ['--resume', 'latest'] : []),
        ...['-p', prompt],
      ],
      env: { GEMINI_API_KEY: capability, GOOGLE_GEMINI_BASE_URL: url },
    };
  },
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
