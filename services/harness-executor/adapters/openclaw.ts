// OpenClaw: one headless turn of its embedded agent, without its gateway. It speaks chat over SSE.
import { INSTRUCTION_FILE, SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import {
  type Adapter,
  type HarnessContext,
  type HarnessPackage,
  modelOf,
  NODE,
  programOf,
} from './adapter.ts';
import { flag, settingsOf } from './settings.ts';

const NAME = 'openclaw';
const VERSION = '2026.9.6';
const PACKAGE: HarnessPackage = {
  name: 'openclaw',
  version: VERSION,
  entry: 'node_modules/openclaw/openclaw.mjs',
  script: 'node_modules/openclaw/scripts/postinstall-bundled-plugins.mjs',
};
/** It is there before the first command, as the configuration lies in it. */
const FOLDER = `${SESSION_DIR}/.openclaw`;
const CONFIG_FILE = `${FOLDER}/openclaw.json`;
const PROVIDER = 'polar';

export const openclaw: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [`${FOLDER}/agents`],
  skillsDir: undefined,
  files: (context) => [{ path: CONFIG_FILE, content: JSON.stringify(configOf(context)) }],
  command(context) {
    const { thinking } = settingsOf(NAME, context);
    return {
      argv: [
        ...[NODE, programOf(NAME, PACKAGE), 'agent', 'exec', '--config', CONFIG_FILE, '--state-dir', FOLDER],
        // The tools themselves, in place of one with which the model searches for them.
        ...['--code-mode', 'direct', '--model', `${PROVIDER}/${modelOf(context)}`],
        // The run's budget ends it, not a limit of its own.
        ...['--timeout', '86400', ...flag('thinking', thinking), '--message-file', INSTRUCTION_FILE],
      ],
      env: {},
    };
  },
  readExit,
};

function configOf(context: HarnessContext): object {
  const { context_window, max_tokens, reasoning } = settingsOf(NAME, context);
  const model = modelOf(context);
  const provider = {
    baseUrl: context.openaiUrl,
    apiKey: context.capability,
    api: 'openai-completions',
    models: [
      {
        id: model,
        name: model,
        reasoning,
        input: ['text'],
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        contextWindow: context_window,
        maxTokens: max_tokens,
      },
    ],
  };
  return {
    models: { mode: 'replace', providers: { [PROVIDER]: provider } },
    tools: { profile: 'coding' },
    agents: { defaults: { model: { primary: `${PROVIDER}/${model}` } } },
  };
}
