// OpenCode: a native program that speaks chat over SSE. What it prints with `--format json` is its transcript.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { McpServer } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessContext, type HarnessPackage, modelOf, programOf } from './adapter.ts';
import { MCP_START_MS } from './mcp.ts';
import { settingsOf } from './settings.ts';

const NAME = 'opencode';
const VERSION = '1.18.33';
const PACKAGE: HarnessPackage = {
  name: 'opencode-ai',
  version: VERSION,
  entry: 'node_modules/opencode-linux-x64/bin/opencode',
};
const FOLDER = `${SESSION_DIR}/.opencode`;
const CONFIG_FILE = `${FOLDER}/opencode.json`;
const PROVIDER = 'polar';

export const opencode: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [],
  skillsDir: `${FOLDER}/skills`,
  files: (context) => [{ path: CONFIG_FILE, content: JSON.stringify(configOf(context)) }],
  command: (context) => ({
    argv: [
      ...[programOf(NAME, PACKAGE), 'run', '--model', `${PROVIDER}/${modelOf(context)}`],
      // Without a title it asks the model for one.
      ...['--title', 'session', '--format', 'json'],
    ],
    env: {
      OPENCODE_CONFIG: CONFIG_FILE,
      OPENCODE_CONFIG_DIR: FOLDER,
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    },
    stdin: context.instruction,
  }),
  readExit,
};

function configOf(context: HarnessContext): JsonObject {
  const { context_window, max_tokens, reasoning, opencode_config } = settingsOf(NAME, context);
  const model = modelOf(context);
  const limit = { context: context_window, output: max_tokens };
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    options: { baseURL: context.openaiUrl, apiKey: context.capability },
    models: { [model]: { name: model, limit, reasoning } },
  };
  const own: JsonObject = {
    provider: { [PROVIDER]: provider },
    permission: { '*': 'allow' },
    mcp: Object.fromEntries(context.mcpServers.map((server) => [server.name, mcpOf(server)])),
  };
  return merged(own, opencode_config as JsonObject);
}

const mcpOf = ({ transport, command, args, env, url }: McpServer): JsonObject =>
  transport === 'stdio'
    ? { type: 'local', command: [command, ...args], environment: env, timeout: MCP_START_MS }
    : { type: 'remote', url, timeout: MCP_START_MS };

/** `over` wins; objects are laid over each other, everything else is replaced. */
function merged(under: JsonObject, over: JsonObject): JsonObject {
  const both = Object.entries(over).map(([key, value]): [string, JsonValue] => {
    const below = under[key];
    return [key, isObject(below) && isObject(value) ? merged(below, value) : value];
  });
  return { ...under, ...Object.fromEntries(both) };
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
