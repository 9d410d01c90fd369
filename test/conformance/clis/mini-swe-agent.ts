// mini-swe-agent: one tool, whole replies, a history that only grows; a task ends with a command that says so.
import { join } from 'node:path';
import { type Cli, HOME, MODEL, SANDBOX_PYTHON, type Unlike } from './cli.ts';

const VERSION = '2.4.6';

const OVERFLOW: Unlike = {
  exitCodes: [1],
  finishes: ['tool_calls'],
  traces: 1,
  says: '',
  why: 'it makes no summaries',
};

export const miniSweAgent: Cli = {
  name: 'mini-swe-agent',
  version: VERSION,
  dialect: 'openai-chat',
  install: {
    python: {
      name: 'mini-swe-agent',
      version: VERSION,
      requirements: join(import.meta.dirname, 'mini-swe-agent.txt'),
      entry: 'minisweagent/run/mini.py',
    },
  },
  files: ({ url, capability }) => ({
    'endpoint.yaml': JSON.stringify({
      model: {
        model_name: `openai/${MODEL}`,
        cost_tracking: 'ignore_errors',
        model_kwargs: { api_base: `${url}/v1`, api_key: capability },
      },
    }),
  }),
  command({ prompt }, program) {
    return {
      argv: [
        ...[SANDBOX_PYTHON, '-m', 'minisweagent.run.mini', '--yolo', '--exit-immediately'],
        ...['-c', 'mini.yaml', '-c', `${HOME}/endpoint.yaml`, '-t', prompt],
      ],
      env: {
        PYTHONPATH: program.slice(0, -'/minisweagent/run/mini.py'.length),
        PYTHONDONTWRITEBYTECODE: '1',
        MSWEA_CONFIGURED: 'true',
        MSWEA_GLOBAL_CONFIG_DIR: `${HOME}/mini`,
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      },
    };
  },
  whole: true,
  farewell: [{ shell: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' }],
  cannot: {
    compaction: 'its history only grows',
    'sub-agents': 'it has none',
    resume: 'a run has no successor',
  },
  unlike: {
    'overflow-sglang': OVERFLOW,
    'overflow-vllm': OVERFLOW,
  },
};
