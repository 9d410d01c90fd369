// The pi coding agent from npm, headless. Its `models.json` is all that it needs; keys there are taken literally.
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessPackage, modelOf, NODE, programOf } from './adapter.ts';
import { settingsOf } from './settings.ts';

const NAME = 'pi';
const VERSION = '0.87.1';
const PACKAGE: HarnessPackage = {
  name: '@earendil-works/pi-coding-agent',
  version: VERSION,
  entry: 'node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js',
};
/** Beside the workspace, so that it is in no patch; pi writes there, so it cannot be read-only. */
export const PI_FOLDER = `${SESSION_DIR}/.pi/agent`;
const PROVIDER = 'polar';

export const pi: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [`${PI_FOLDER}/sessions`],
  skillsDir: undefined,
  files(context) {
    const { context_window, max_tokens, reasoning } = settingsOf(NAME, context);
    const model = {
      id: modelOf(context),
      reasoning,
      input: ['text'],
      contextWindow: context_window,
      maxTokens: max_tokens,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    };
    const provider = {
      baseUrl: context.openaiUrl,
      api: 'openai-completions',
      apiKey: context.capability,
      models: [model],
    };
    return [
      {
        path: `${PI_FOLDER}/models.json`,
        content: JSON.stringify({ providers: { [PROVIDER]: provider } }),
      },
    ];
  },
  command: (context) => ({
    argv: [
      ...[NODE, programOf(NAME, PACKAGE), '--provider', PROVIDER, '--model', modelOf(context)],
      ...['--no-extensions', '--no-skills', '--no-prompt-templates', '--no-themes'],
      ...['--no-context-files', '--no-approve', '--print'],
    ],
    env: { PI_CODING_AGENT_DIR: PI_FOLDER, PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    // As an argument, an instruction that starts with `@` or `-` would be read as a file or an option.
    stdin: context.instruction,
  }),
  readExit,
};
