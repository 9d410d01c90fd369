// The pi coding agent from npm, headless. Its `models.json` is all that it needs; keys there are taken literally.
import { checkStrict } from '../../common/config/faults.ts';
import { harnessSettings } from '../../common/specs/strategies.ts';
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, HARNESS_MOUNT, type HarnessPackage, NODE_MOUNT } from './adapter.ts';

const VERSION = '0.87.1';
const PACKAGE: HarnessPackage = {
  name: '@earendil-works/pi-coding-agent',
  version: VERSION,
  entry: 'node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js',
};
/** Beside the workspace, so that it is in no patch; pi writes there, so it cannot be read-only. */
const CONFIG_DIR = `${SESSION_DIR}/.pi/agent`;
const PROVIDER = 'polar';
/** What an endpoint with one model is asked for where a task names none. */
const MODEL_DEFAULT = 'policy';

export const pi: Adapter = {
  name: 'pi',
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  files({ settings, modelName, openaiUrl, capability }) {
    const { context_window, max_tokens, reasoning } = checkStrict(
      harnessSettings.pi,
      settings,
      'harness.settings',
      'INVALID_TASK',
    );
    const model = {
      id: modelName || MODEL_DEFAULT,
      reasoning,
      input: ['text'],
      contextWindow: context_window,
      maxTokens: max_tokens,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    };
    const provider = { baseUrl: openaiUrl, api: 'openai-completions', apiKey: capability, models: [model] };
    return [
      {
        path: `${CONFIG_DIR}/models.json`,
        content: JSON.stringify({ providers: { [PROVIDER]: provider } }),
      },
    ];
  },
  command({ instruction, modelName }) {
    return {
      argv: [
        `${NODE_MOUNT}/bin/node`,
        `${HARNESS_MOUNT}/pi/${PACKAGE.entry}`,
        ...['--provider', PROVIDER, '--model', modelName || MODEL_DEFAULT],
        ...['--no-session', '--no-extensions', '--no-skills', '--no-prompt-templates', '--no-themes'],
        ...['--no-context-files', '--no-approve', '--print'],
      ],
      env: { PI_CODING_AGENT_DIR: CONFIG_DIR, PI_OFFLINE: '1', PI_TELEMETRY: '0' },
      // As an argument, an instruction that starts with `@` or `-` would be read as a file or an option.
      stdin: instruction,
    };
  },
  readExit,
};
