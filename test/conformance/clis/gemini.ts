// Gemini CLI: generateContent over SSE; a broken socket in a stream ends it.
import { NODE_MOUNT } from '../../../services/harness-executor/adapters/adapter.ts';
import { type Cli, CONTEXT_TOKENS, MODEL } from './cli.ts';

const VERSION = '0.61.0';

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
  files: () => ({
    '.gemini/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
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
  subAgent: (prompt) => ({ tool: 'generalist', arguments: { request: prompt } }),
  compactsAt: CONTEXT_TOKENS - 1_000,
  cannot: {},
  unlike: {},
};
