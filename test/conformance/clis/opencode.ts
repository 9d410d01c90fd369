// OpenCode: a native program; titles are a call of their own unless `--title` is given.
import { type Cli, CONTEXT_TOKENS, HOME, MODEL, REPLY_TOKENS_MAX, type Unlike } from './cli.ts';

const VERSION = '1.18.33';

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
  version: VERSION,
  dialect: 'openai-chat',
  install: {
    npm: {
      name: 'opencode-ai',
      version: VERSION,
      entry: 'node_modules/opencode-linux-x64/bin/opencode',
    },
  },
  files({ url, capability }) {
    const models = {
      [MODEL]: { name: MODEL, limit: { context: CONTEXT_TOKENS, output: REPLY_TOKENS_MAX }, reasoning: true },
    };
    const polar = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: `${url}/v1`, apiKey: capability },
      models,
    };
    return { 'opencode.json': JSON.stringify({ provider: { polar }, permission: { '*': 'allow' } }) };
  },
  command({ prompt, resume }, program) {
    return {
      argv: [
        program,
        ...['run', '--model', `polar/${MODEL}`, '--title', 'fixed'],
        ...(resume ? ['--continue'] : []),
        prompt,
      ],
      env: {
        OPENCODE_CONFIG: `${HOME}/opencode.json`,
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      },
    };
  },
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
