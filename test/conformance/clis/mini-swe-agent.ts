// mini-swe-agent: one tool, whole replies, a history that only grows; a task ends with a command that says so.
import { miniSweAgent as adapter } from '../../../services/harness-executor/adapters/mini-swe-agent.ts';
import { type Cli, of, type Unlike } from './cli.ts';

const OVERFLOW: Unlike = {
  exitCodes: [1],
  finishes: ['tool_calls'],
  traces: 1,
  says: '',
  why: 'it makes no summaries',
};

export const miniSweAgent: Cli = {
  name: 'mini-swe-agent',
  ...of(adapter),
  resumed: (argv) => argv,
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
