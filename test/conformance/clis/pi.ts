// pi: the smallest prompt of all, no side calls, compacts at the end of a run or on an overflow.
import { pi as adapter, PI_FOLDER } from '../../../services/harness-executor/adapters/pi.ts';
import { type Cli, CONTEXT_TOKENS, of, REPLY_TOKENS_MAX } from './cli.ts';

export const pi: Cli = {
  name: 'pi',
  ...of(adapter),
  settings: () => ({ context_window: CONTEXT_TOKENS, max_tokens: REPLY_TOKENS_MAX, reasoning: true }),
  // A short session would be kept as a whole.
  files: [
    {
      path: `${PI_FOLDER}/settings.json`,
      content: JSON.stringify({ compaction: { keepRecentTokens: 10 } }),
    },
  ],
  resumed: (argv) => [...argv, '--continue'],
  compactsAt: 50_000,
  cannot: { 'sub-agents': 'it has none' },
  unlike: {},
};
