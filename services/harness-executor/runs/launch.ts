// What is put into the sandbox and started there.
import type { AttemptRef, RunWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Runtime } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { openaiUrl, sessionUrl } from '../../common/endpoint.ts';
import { PolarError } from '../../common/errors.ts';
import type { ExecInput } from '../../common/exec.ts';
import { type Adapter, HARNESS_MOUNT, type HarnessContext, NODE_MOUNT } from '../adapters/adapter.ts';
import { INSTRUCTION_FILE, injectedEnv } from '../domain/environment.ts';

export interface LaunchInput {
  readonly ref: AttemptRef;
  readonly work: RunWork;
  /** Where the work does not tell the URL of the proxy: then its manager may not know `default_env` either. */
  readonly runtime?: Pick<Runtime, 'proxyUrl' | 'env'> | undefined;
  readonly capability: string;
  /** Folder of the installed harness, if it has one. */
  readonly installed: string | undefined;
  readonly nodeDir: string;
  /** Of the sandbox; empty where the harness needs none. */
  readonly python: string;
}

export interface Launch {
  readonly files: { target: string; content: Uint8Array; mode?: number }[];
  readonly command: Pick<ExecInput, 'argv' | 'env' | 'defaultEnv' | 'cwd' | 'stdin' | 'mounts'>;
}

/** Throws INVALID_TASK for settings or a command that the adapter cannot use. */
export function launchOf(adapter: Adapter, input: LaunchInput): Launch {
  const { ref, work, runtime, capability, python } = input;
  const endpoint = { proxyUrl: runtime?.proxyUrl ?? work.proxyUrl, capability };
  const context: HarnessContext = {
    instruction: work.instruction,
    modelName: work.harness?.modelName ?? '',
    settings: work.harness?.settings ?? {},
    step: work.harness?.command,
    openaiUrl: openaiUrl(endpoint),
    sessionUrl: sessionUrl(endpoint),
    capability,
    python,
    mcpServers: work.harness?.mcpServers ?? [],
  };
  const { argv, env, cwd, stdin } = adapter.command(context);
  const { sessionId, taskId } = ref;
  const injected = injectedEnv({ ...endpoint, sessionId, taskId, instruction: work.instruction });
  const own = [{ path: INSTRUCTION_FILE, content: work.instruction }, ...adapter.files(context)];
  const files = own.map(({ path, content }) => ({ target: path, content: Buffer.from(content) }));
  return {
    files: [...files, ...skillFiles(adapter, input)],
    command: {
      argv,
      // Injected variables give way to the runtime's, those to the harness's, those to the command's own.
      defaultEnv: injected,
      env: { ...(runtime && { ...injected, ...runtime.env }), ...work.harness?.env, ...env },
      mounts: mountsOf(adapter, input),
      ...(cwd !== undefined && { cwd }),
      ...(stdin !== undefined && { stdin: Buffer.from(stdin) }),
    },
  };
}

function skillFiles({ name, skillsDir }: Adapter, { work: { harness } }: LaunchInput): Launch['files'] {
  const skills = harness?.skills ?? [];
  if (skills.length > 0 && skillsDir === undefined) {
    throw new PolarError('INVALID_TASK', `harness.skills: ${name} takes no skills`);
  }
  return skills.map(({ target, content, mode }) => ({
    target: `${skillsDir}/${target}`,
    content,
    mode,
  }));
}

function mountsOf(
  adapter: Adapter,
  { installed, nodeDir }: LaunchInput,
): { source: string; target: string }[] {
  if (installed === undefined) return [];
  return [
    { source: nodeDir, target: NODE_MOUNT },
    { source: installed, target: `${HARNESS_MOUNT}/${adapter.name}` },
  ];
}
