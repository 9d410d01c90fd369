// Codex: Responses over SSE, all of its configuration in one file.
import type { McpServer } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessContext, type HarnessPackage, modelOf, programOf } from './adapter.ts';
import { MCP_START_MS } from './mcp.ts';
import { settingsOf } from './settings.ts';

const NAME = 'codex';
const VERSION = '0.169.0';
const PACKAGE: HarnessPackage = {
  name: '@openai/codex',
  version: VERSION,
  entry: 'node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex',
};
const FOLDER = `${SESSION_DIR}/.codex`;

export const codex: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-responses',
  install: PACKAGE,
  transcripts: [`${FOLDER}/sessions`],
  skillsDir: `${FOLDER}/skills`,
  files: (context) => [{ path: `${FOLDER}/config.toml`, content: configOf(context) }],
  command: ({ instruction, capability }) => ({
    argv: [programOf(NAME, PACKAGE), 'exec', '--skip-git-repo-check', '-'],
    env: { CODEX_HOME: FOLDER, POLAR_KEY: capability },
    stdin: instruction,
  }),
  readExit,
};

function configOf(context: HarnessContext): string {
  const { reasoning_effort, context_window, multi_agent } = settingsOf(NAME, context);
  return `model = ${quoted(modelOf(context))}
model_provider = "polar"
${reasoning_effort === undefined ? '' : `model_reasoning_effort = "${reasoning_effort}"\n`}\
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
model_context_window = ${context_window}
[analytics]
enabled = false
[features]
plugins = false
apps = false
goals = false
multi_agent = ${multi_agent}
[model_providers.polar]
name = "polar"
base_url = ${quoted(context.openaiUrl)}
env_key = "POLAR_KEY"
wire_api = "responses"
${context.mcpServers.map(mcpTable).join('')}`;
}

/** One that is not required is left out without a word where it has not started within a second. */
function mcpTable({ name, transport, command, args, env, url }: McpServer): string {
  const head = `[mcp_servers.${name}]\nrequired = true\nstartup_timeout_sec = ${MCP_START_MS / 1000}\n`;
  if (transport !== 'stdio') return `${head}url = ${quoted(url)}\n`;
  const variables = Object.entries(env).map(([key, value]) => `${key} = ${quoted(value)}`);
  return `${head}command = ${quoted(command)}
args = [${args.map(quoted).join(', ')}]
env = { ${variables.join(', ')} }
`;
}

/** A basic string of TOML is one of JSON, but for DEL. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f');
