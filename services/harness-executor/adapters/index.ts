// The adapters, one for each name of the catalogue.
import type { HarnessSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { HARNESSES, type HarnessName, listed, NOT_INSTALLABLE } from '../../common/specs/catalogue.ts';
import type { Adapter } from './adapter.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import { geminiCli } from './gemini-cli.ts';
import { hermes } from './hermes.ts';
import { miniSweAgent } from './mini-swe-agent.ts';
import { openclaw } from './openclaw.ts';
import { opencode } from './opencode.ts';
import { openhandsSdk } from './openhands-sdk.ts';
import { pi } from './pi.ts';
import { loadPlugin } from './plugin.ts';
import { qwenCode } from './qwen-code.ts';
import { shell } from './shell.ts';

export const ADAPTERS: Readonly<Record<HarnessName, Adapter>> = {
  shell,
  pi,
  claude_code: claudeCode,
  codex,
  gemini_cli: geminiCli,
  qwen_code: qwenCode,
  opencode,
  mini_swe_agent: miniSweAgent,
  openclaw,
  hermes,
  openhands_sdk: openhandsSdk,
};

/** Throws UNKNOWN_HARNESS, or HARNESS_INSTALL_FAILED for one that no node can install. */
export function adapterOf(name: string): Adapter {
  const known = HARNESSES.find((one) => one === name);
  if (known !== undefined) return ADAPTERS[known];
  const why = NOT_INSTALLABLE[name];
  if (why !== undefined) throw new PolarError('HARNESS_INSTALL_FAILED', `${name}: ${why}`);
  throw new PolarError('UNKNOWN_HARNESS', `unknown harness ${name}; there are ${listed(HARNESSES)}`);
}

/** The adapter of a task's harness, by name or from a plug-in. Throws HARNESS_PLUGIN_INVALID too. */
export async function adapterFor(
  harness: HarnessSpec | undefined,
  pluginsDir: string | undefined,
): Promise<Adapter> {
  const importPath = harness?.importPath ?? '';
  return importPath === '' ? adapterOf(harness?.name ?? '') : await loadPlugin(pluginsDir, importPath);
}
