// Claude Code: Messages over SSE, whole replies after an error event; the prompt depends on the model's name.
import { type Cli, CONTEXT_TOKENS, MODEL } from './cli.ts';

const VERSION = '2.1.329';

export const claude: Cli = {
  name: 'claude',
  version: VERSION,
  dialect: 'anthropic-messages',
  install: {
    npm: {
      name: '@anthropic-ai/claude-code',
      version: VERSION,
      entry: 'node_modules/@anthropic-ai/claude-code-linux-x64/claude',
    },
  },
  files: () => ({}),
  command({ prompt, resume, url, capability }, program) {
    return {
      argv: [
        program,
        ...['--model', MODEL, '--dangerously-skip-permissions'],
        ...(resume ? ['--continue'] : []),
        ...['-p', prompt],
      ],
      env: {
        IS_SANDBOX: '1',
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: capability,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: MODEL,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(CONTEXT_TOKENS),
      },
    };
  },
  subAgent: (prompt) => ({
    tool: 'Agent',
    arguments: {
      description: 'a small part',
      prompt,
      subagent_type: 'general-purpose',
      run_in_background: false,
    },
  }),
  compactsAt: CONTEXT_TOKENS - 1_000,
  aroundSummary: 'TEXT ONLY',
  cannot: {},
  unlike: {
    compaction: { traces: 2, why: 'its request for a summary goes on with the conversation' },
  },
};
