// Qwen Code: a prompt of 30 KB with the state of the folder in it, a moving max_tokens.
import { NODE_MOUNT } from '../../../services/harness-executor/adapters/adapter.ts';
import { type Cli, CONTEXT_TOKENS, MODEL, type Unlike } from './cli.ts';

const VERSION = '0.24.4';

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
  version: VERSION,
  dialect: 'openai-chat',
  install: {
    npm: {
      name: '@qwen-code/qwen-code',
      version: VERSION,
      entry: 'node_modules/@qwen-code/qwen-code/cli-entry.js',
    },
  },
  files: () => ({
    '.qwen/settings.json': JSON.stringify({
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
      memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
      model: { generationConfig: { contextWindowSize: CONTEXT_TOKENS } },
      security: { auth: { selectedType: 'openai' } },
    }),
  }),
  command({ prompt, resume, url, capability }, program) {
    return {
      argv: [
        `${NODE_MOUNT}/bin/node`,
        program,
        '--yolo',
        ...(resume ? ['--continue'] : []),
        ...['-p', prompt],
      ],
      env: {
        OPENAI_API_KEY: capability,
        OPENAI_BASE_URL: `${url}/v1`,
        OPENAI_MODEL: MODEL,
        QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
        QWEN_CODE_NO_RELAUNCH: '1',
      },
    };
  },
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
