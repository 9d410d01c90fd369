// Codex: Responses over SSE; keeps its tools few where no feature asks for more.
import { type Cli, CONTEXT_TOKENS, HOME, MODEL, type Unlike } from './cli.ts';

const VERSION = '0.169.0';

const OVERFLOW: Unlike = {
  exitCodes: [1],
  finishes: ['tool_calls'],
  traces: 1,
  says: '',
  why: 'it ends on an overflow, and makes no summary then',
};

export const codex: Cli = {
  name: 'codex',
  version: VERSION,
  dialect: 'openai-responses',
  install: {
    npm: {
      name: '@openai/codex',
      version: VERSION,
      entry: 'node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex',
    },
  },
  files: (ask) => ({
    '.codex/config.toml': `
model = "${MODEL}"
model_provider = "polar"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
model_context_window = ${CONTEXT_TOKENS}
[analytics]
enabled = false
[features]
plugins = false
apps = false
goals = false
multi_agent = ${ask.case === 'sub-agents'}
[model_providers.polar]
name = "polar"
base_url = "${ask.url}/v1"
env_key = "POLAR_KEY"
wire_api = "responses"
`,
  }),
  command({ prompt, resume, capability }, program) {
    return {
      argv: [program, 'exec', ...(resume ? ['resume', '--last'] : []), '--skip-git-repo-check', prompt],
      env: { CODEX_HOME: `${HOME}/.codex`, POLAR_KEY: capability },
    };
  },
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
