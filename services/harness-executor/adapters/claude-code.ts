// Claude Code: Messages over SSE. Its own folder holds configuration, transcripts and skills.
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessContext, type HarnessPackage, modelOf, programOf } from './adapter.ts';
import { MCP_START_MS, mcpEntries } from './mcp.ts';
import { flag, settingsOf } from './settings.ts';

const NAME = 'claude_code';
const VERSION = '2.1.330';
const PACKAGE: HarnessPackage = {
  name: '@anthropic-ai/claude-code',
  version: VERSION,
  entry: 'node_modules/@anthropic-ai/claude-code-linux-x64/claude',
};
const FOLDER = `${SESSION_DIR}/.claude`;
const MCP_FILE = `${FOLDER}/mcp.json`;

/** Every tier that it knows is the one model: side calls and sub-agents ask for others by themselves. */
const TIERS = ['HAIKU', 'SONNET', 'OPUS', 'FABLE'].map((tier) => `ANTHROPIC_DEFAULT_${tier}_MODEL`);

export const claudeCode: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'anthropic-messages',
  install: PACKAGE,
  transcripts: [`${FOLDER}/projects`],
  skillsDir: `${FOLDER}/skills`,
  files({ mcpServers }) {
    if (mcpServers.length === 0) return [];
    const servers = mcpEntries(mcpServers, ({ transport, url }) => ({
      type: transport === 'sse' ? 'sse' : 'http',
      url,
    }));
    return [{ path: MCP_FILE, content: JSON.stringify({ mcpServers: servers }) }];
  },
  command(context) {
    const { max_thinking_tokens, context_window } = settingsOf(NAME, context);
    const model = modelOf(context);
    return {
      argv: [programOf(NAME, PACKAGE), '--model', model, ...flagsOf(context), '--print'],
      env: {
        CLAUDE_CONFIG_DIR: FOLDER,
        // It refuses to work as root elsewhere, and some sandboxes have no other user.
        IS_SANDBOX: '1',
        ANTHROPIC_BASE_URL: context.sessionUrl,
        ANTHROPIC_API_KEY: context.capability,
        ...Object.fromEntries(TIERS.map((tier) => [tier, model])),
        CLAUDE_CODE_SUBAGENT_MODEL: model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        ...(context.mcpServers.length > 0 && { MCP_TIMEOUT: String(MCP_START_MS) }),
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(context_window),
        ...(max_thinking_tokens !== undefined && { MAX_THINKING_TOKENS: String(max_thinking_tokens) }),
      },
      stdin: context.instruction,
    };
  },
  readExit,
};

function flagsOf(context: HarnessContext): string[] {
  const settings = settingsOf(NAME, context);
  return [
    ...(settings.allowed_tools.length > 0
      ? ['--permission-mode', 'dontAsk']
      : ['--dangerously-skip-permissions']),
    ...flag('max-turns', settings.max_turns),
    ...flag('effort', settings.reasoning_effort),
    ...flag('max-budget-usd', settings.max_budget_usd),
    ...flag('fallback-model', settings.fallback_model),
    ...flag('append-system-prompt', settings.append_system_prompt),
    ...flag('allowed-tools', settings.allowed_tools.join(',') || undefined),
    ...flag('disallowed-tools', settings.disallowed_tools.join(',') || undefined),
    ...(context.mcpServers.length > 0 ? ['--mcp-config', MCP_FILE, '--strict-mcp-config'] : []),
  ];
}
