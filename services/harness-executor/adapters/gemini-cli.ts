// Gemini CLI: generateContent over SSE.
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessPackage, modelOf, NODE, programOf } from './adapter.ts';
import { geminiRemote, mcpEntries } from './mcp.ts';
import { settingsOf } from './settings.ts';

const NAME = 'gemini_cli';
const VERSION = '0.61.0';
const PACKAGE: HarnessPackage = {
  name: '@google/gemini-cli',
  version: VERSION,
  entry: 'node_modules/@google/gemini-cli/bundle/gemini.js',
};
/** Stands for the user's home, for this program alone. */
const HOME = `${SESSION_DIR}/.gemini-cli`;
const FOLDER = `${HOME}/.gemini`;

export const geminiCli: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'google-generate',
  install: PACKAGE,
  transcripts: [`${FOLDER}/tmp`],
  skillsDir: `${FOLDER}/skills`,
  files(context) {
    const { max_turns, compression_threshold } = settingsOf(NAME, context);
    const settings = {
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      general: { disableAutoUpdate: true },
      model: {
        ...(max_turns !== undefined && { maxSessionTurns: max_turns }),
        ...(compression_threshold !== undefined && { compressionThreshold: compression_threshold }),
      },
      mcpServers: mcpEntries(context.mcpServers, geminiRemote),
    };
    return [{ path: `${FOLDER}/settings.json`, content: JSON.stringify(settings) }];
  },
  command: (context) => ({
    // As an argument of its own, a name that starts with `-` would be read as an option.
    argv: [NODE, programOf(NAME, PACKAGE), `--model=${modelOf(context)}`, '--yolo', '--skip-trust'],
    env: {
      GEMINI_CLI_HOME: HOME,
      GEMINI_API_KEY: context.capability,
      GOOGLE_GEMINI_BASE_URL: context.sessionUrl,
    },
    stdin: context.instruction,
  }),
  readExit,
};
