// Hermes Agent: one query of its chat command, over the chat dialect.
import { join } from 'node:path';
import { PolarError } from '../../common/errors.ts';
import { SESSION_DIR } from '../domain/environment.ts';
import { readExit } from '../domain/exit.ts';
import { type Adapter, type HarnessContext, type HarnessPackage, modelOf } from './adapter.ts';
import { pythonEnv } from './python.ts';
import { flag, settingsOf } from './settings.ts';
import { yamlOf } from './yaml.ts';

const NAME = 'hermes';
const VERSION = '0.19.0';
const PACKAGE: HarnessPackage = {
  name: 'hermes-agent',
  version: VERSION,
  entry: 'hermes_cli/main.py',
  requirements: join(import.meta.dirname, 'hermes.txt'),
  pythonMin: '3.11',
};
const FOLDER = `${SESSION_DIR}/.hermes`;
/** Linux's limit for one argument. */
const ARGUMENT_BYTES_MAX = 128 * 1024 - 1;

export const hermes: Adapter = {
  name: NAME,
  version: VERSION,
  dialect: 'openai-chat',
  install: PACKAGE,
  transcripts: [`${FOLDER}/sessions`],
  skillsDir: undefined,
  files: (context) => [{ path: `${FOLDER}/config.yaml`, content: yamlOf(configOf(context)) }],
  command(context) {
    const { max_turns } = settingsOf(NAME, context);
    return {
      argv: [
        ...[context.python, '-m', 'hermes_cli.main', 'chat', '--yolo', '-Q', ...flag('max-turns', max_turns)],
        queryOf(context),
      ],
      env: { ...pythonEnv(NAME), HERMES_HOME: FOLDER },
    };
  },
  readExit,
};

/** It takes an instruction as an argument only. Throws INVALID_TASK for one that is too long for that. */
function queryOf({ instruction }: HarnessContext): string {
  const query = `--query=${instruction}`;
  if (Buffer.byteLength(query) <= ARGUMENT_BYTES_MAX) return query;
  const message = `instruction: ${NAME} takes one as an argument, of at most ${ARGUMENT_BYTES_MAX} bytes: upload the rest as a file`;
  throw new PolarError('INVALID_TASK', message);
}

function configOf(context: HarnessContext): object {
  const { context_window } = settingsOf(NAME, context);
  return {
    model: {
      default: modelOf(context),
      provider: 'custom',
      base_url: context.openaiUrl,
      api_key: context.capability,
      context_length: context_window,
    },
    memory: { memory_enabled: false, user_profile_enabled: false },
    checkpoints: { enabled: false },
    sessions: { write_json_snapshots: true },
  };
}
