// mini-swe-agent: one tool, whole replies, a history that only grows.
import { join } from 'node:path';
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessContext, type HarnessPackage, modelOf } from './adapter.ts';
import { pythonEnv } from './python.ts';
import { settingsOf } from './settings.ts';
import { yamlOf } from './yaml.ts';

const NAME = 'mini_swe_agent';
const VERSION = '2.4.6';
const PACKAGE: HarnessPackage = {
  name: 'mini-swe-agent',
  version: VERSION,
  entry: 'minisweagent/run/mini.py',
  requirements: join(import.meta.dirname, 'mini-swe-agent.txt'),
  pythonMin: '3.10',
};
const FOLDER = `${SESSION_DIR}/.mini-swe-agent`;
const CONFIG_FILE = `${FOLDER}/polar.yaml`;
const TRAJECTORY_FILE = `${FOLDER}/trajectory.json`;

export const miniSweAgent: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [TRAJECTORY_FILE],
  skillsDir: undefined,
  files: (context) => [{ path: CONFIG_FILE, content: yamlOf(configOf(context)) }],
  command(context) {
    const { model_retry_attempts } = settingsOf(NAME, context);
    return {
      argv: [
        ...[context.python, '-m', 'minisweagent.run.mini', '--yolo', '--exit-immediately'],
        ...['--output', TRAJECTORY_FILE, '-c', 'mini.yaml', '-c', CONFIG_FILE],
      ],
      env: {
        ...pythonEnv(NAME),
        MSWEA_CONFIGURED: 'true',
        MSWEA_GLOBAL_CONFIG_DIR: FOLDER,
        MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT: String(model_retry_attempts),
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      },
    };
  },
  readExit,
};

function configOf(context: HarnessContext): object {
  const { cost_limit, step_limit, model_kwargs } = settingsOf(NAME, context);
  return {
    run: { task: context.instruction },
    agent: { cost_limit, step_limit },
    model: {
      model_name: `openai/${modelOf(context)}`,
      cost_tracking: 'ignore_errors',
      model_kwargs: { ...model_kwargs, api_base: context.openaiUrl, api_key: context.capability },
    },
  };
}
