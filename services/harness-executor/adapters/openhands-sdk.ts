// OpenHands' SDK with its default agent, by a program of ours, as it has none itself.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { INSTRUCTION_FILE, SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessContext, type HarnessPackage, modelOf } from './adapter.ts';
import { MCP_START_MS } from './mcp.ts';
import { pythonEnv } from './python.ts';
import { settingsOf } from './settings.ts';

const NAME = 'openhands_sdk';
const VERSION = '1.58.2';
const PACKAGE: HarnessPackage = {
  name: 'openhands-sdk',
  version: VERSION,
  entry: 'openhands/sdk/__init__.py',
  requirements: join(import.meta.dirname, 'openhands-sdk.txt'),
  pythonMin: '3.12',
};
const PROGRAM = join(import.meta.dirname, 'openhands-sdk.py');
const FOLDER = `${SESSION_DIR}/.openhands`;
const PROGRAM_FILE = `${FOLDER}/run.py`;
const CONFIG_FILE = `${FOLDER}/polar.json`;
const CONVERSATIONS = `${FOLDER}/conversations`;
const SKILLS = `${FOLDER}/skills`;
/** What it calls the transports of servers by address. */
const REMOTE: Readonly<Record<string, string>> = { sse: 'sse', streamable_http: 'http' };

export const openhandsSdk: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [CONVERSATIONS],
  skillsDir: SKILLS,
  files: (context) => [
    { path: PROGRAM_FILE, content: readFileSync(PROGRAM, 'utf8') },
    { path: CONFIG_FILE, content: JSON.stringify(configOf(context)) },
  ],
  command: (context) => ({
    argv: [context.python, PROGRAM_FILE, CONFIG_FILE, INSTRUCTION_FILE],
    env: {
      ...pythonEnv(NAME),
      OPENHANDS_SUPPRESS_BANNER: '1',
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      // What it writes beside its conversations.
      OH_PERSISTENCE_DIR: FOLDER,
    },
  }),
  readExit,
};

function configOf(context: HarnessContext): object {
  const { max_iterations, context_window, ...model } = settingsOf(NAME, context);
  const mcpServers = context.mcpServers.map(({ name, transport, url, command, args, env }) => [
    name,
    transport === 'stdio' ? { transport, command, args, env } : { transport: REMOTE[transport], url },
  ]);
  return {
    llm: {
      model: `openai/${modelOf(context)}`,
      base_url: context.openaiUrl,
      api_key: context.capability,
      api_mode: 'chat',
      usage_id: 'agent',
      max_input_tokens: context_window,
      ...model,
    },
    conversations: CONVERSATIONS,
    skills: SKILLS,
    mcp: Object.fromEntries(mcpServers),
    mcp_start_seconds: MCP_START_MS / 1_000,
    limits: { ...(max_iterations !== undefined && { max_iteration_per_run: max_iterations }) },
  };
}
