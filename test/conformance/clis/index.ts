// All CLIs, in the order of the document.
import { claude } from './claude.ts';
import type { Cli } from './cli.ts';
import { codex } from './codex.ts';
import { gemini } from './gemini.ts';
import { miniSweAgent } from './mini-swe-agent.ts';
import { opencode } from './opencode.ts';
import { pi } from './pi.ts';
import { qwen } from './qwen.ts';

export const CLIS: readonly Cli[] = [codex, claude, qwen, pi, opencode, gemini, miniSweAgent];
