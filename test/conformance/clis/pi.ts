// pi: the smallest prompt of all, no side calls, compacts at the end of a run or on an overflow.
import { NODE_MOUNT } from '../../../services/harness-executor/adapters/adapter.ts';
import { pi as adapter } from '../../../services/harness-executor/adapters/pi.ts';
import { type Cli, CONTEXT_TOKENS, HOME, MODEL, REPLY_TOKENS_MAX } from './cli.ts';

const model = {
  id: MODEL,
  reasoning: true,
  input: ['text'],
  contextWindow: CONTEXT_TOKENS,
  maxTokens: REPLY_TOKENS_MAX,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
};

export const pi: Cli = {
  name: 'pi',
  version: adapter.version,
  dialect: 'openai-chat',
  install: { npm: adapter.install as NonNullable<typeof adapter.install> },
  files({ url, capability }) {
    const polar = { baseUrl: `${url}/v1`, api: 'openai-completions', apiKey: capability, models: [model] };
    return {
      '.pi/agent/models.json': JSON.stringify({ providers: { polar } }),
      // A short session would be kept as a whole.
      '.pi/agent/settings.json': JSON.stringify({ compaction: { keepRecentTokens: 10 } }),
    };
  },
  command({ prompt, resume }, program) {
    const argv = [`${NODE_MOUNT}/bin/node`, program, '--provider', 'polar', '--model', MODEL, '--print'];
    return {
      argv: resume ? [...argv, '--continue'] : argv,
      env: { PI_CODING_AGENT_DIR: `${HOME}/.pi/agent`, PI_OFFLINE: '1', PI_TELEMETRY: '0' },
      stdin: prompt,
    };
  },
  compactsAt: 50_000,
  cannot: { 'sub-agents': 'it has none' },
  unlike: {},
};
