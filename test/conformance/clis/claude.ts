// Claude Code: Messages over SSE, whole replies after an error event; the prompt depends on the model's name.
import { claudeCode as adapter } from '../../../services/harness-executor/adapters/claude-code.ts';
import { type Cli, CONTEXT_TOKENS, of } from './cli.ts';

export const claude: Cli = {
  name: 'claude',
  ...of(adapter),
  settings: () => ({ context_window: CONTEXT_TOKENS }),
  resumed: (argv) => [...argv, '--continue'],
  subAgent: (prompt) => ({
    tool: 'Agent',
    arguments: {
      description: 'a small part',
      prompt,
      subagent_type: 'general-purpose',
      run_in_background: false,
    },
  }),
  compactsAt: CONTEXT_TOKENS - 1_000,
  aroundSummary: 'TEXT ONLY',
  cannot: {},
  unlike: {
    compaction: { traces: 2, why: 'its request for a summary goes on with the conversation' },
  },
};
