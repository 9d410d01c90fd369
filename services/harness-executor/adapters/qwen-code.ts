// Qwen Code: chat over SSE.
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessPackage, modelOf, NODE, programOf } from './adapter.ts';
import { geminiRemote, MCP_START_MS, mcpEntries } from './mcp.ts';
import { flag, settingsOf } from './settings.ts';

const NAME = 'qwen_code';
const VERSION = '0.24.4';
const PACKAGE: HarnessPackage = {
  name: '@qwen-code/qwen-code',
  version: VERSION,
  entry: 'node_modules/@qwen-code/qwen-code/cli-entry.js',
};
const FOLDER = `${SESSION_DIR}/.qwen`;

export const qwenCode: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [`${FOLDER}/projects`],
  skillsDir: `${FOLDER}/skills`,
  files(context) {
    const { context_window } = settingsOf(NAME, context);
    const settings = {
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
      // A hidden conversation after the answer.
      memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
      model: { generationConfig: { contextWindowSize: context_window } },
      security: { auth: { selectedType: 'openai' } },
      mcpServers: mcpEntries(context.mcpServers, geminiRemote, { discoveryTimeoutMs: MCP_START_MS }),
    };
    return [{ path: `${FOLDER}/settings.json`, content: JSON.stringify(settings) }];
  },
  command(context) {
    const { max_turns } = settingsOf(NAME, context);
    return {
      argv: [NODE, programOf(NAME, PACKAGE), '--yolo', ...flag('max-session-turns', max_turns)],
      env: {
        QWEN_HOME: FOLDER,
        OPENAI_API_KEY: context.capability,
        OPENAI_BASE_URL: context.openaiUrl,
        OPENAI_MODEL: modelOf(context),
        QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
        QWEN_CODE_NO_RELAUNCH: '1',
      },
      stdin: context.instruction,
    };
  },
  readExit,
};
