// A command of a sandbox, and how it ended.
import type { EgressRule } from '../../../gen/ts/polar/common/v1/network_pb.js';
import { type DeniedCount, NOTHING_DENIED } from './denials.ts';
import type { GpuGrant } from './gpus.ts';
import type { ResolvedMount } from './mounts.ts';

export interface Command {
  /** Program and arguments; no shell is added. */
  readonly argv: readonly string[];
  /** Absolute in the sandbox. */
  readonly cwd: string;
  /** Above the sandbox's own. */
  readonly env: Readonly<Record<string, string>>;
  /** Below the sandbox's own. */
  readonly defaultEnv?: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
  readonly limit: CommandLimit;
  readonly mounts: readonly ResolvedMount[];
  /** Session as which it may call the LLM proxy; undefined: it may not. */
  readonly proxyAs: string | undefined;
  /** GPUs that it has; absent: none, or what its sandbox was made with. */
  readonly gpus?: GpuGrant;
  /** What it may connect to through the egress proxy; none: nothing. */
  readonly egress?: readonly EgressRule[];
}

/** Linux's limit for one argument or variable. */
export const ARGUMENT_BYTES_MAX = 128 * 1024 - 1;

/** Of all arguments together: Linux takes 2 MiB with the environment. */
export const ARGUMENTS_BYTES_MAX = 1024 * 1024;

/** Of them, and of all variables together: bwrap takes 9,000 in all, three for each variable. */
export const ARGUMENTS_MAX = 2_048;
export const VARIABLES_MAX = 2_048;

/** The time limit of a command. */
export interface CommandLimit {
  /** Count from now on; `over` is called once, unless it is stopped before. */
  start(over: () => void): void;
  /** Count anew from now on, or from the start where that is still to come. */
  renew(ms: number): void;
  stop(): void;
}

/** What came of a command's connections. */
export interface NetworkUse {
  /** Those to the LLM proxy that could not be made. */
  readonly proxyConnectFailures: number;
  /** The latest try to reach the LLM proxy failed. */
  readonly proxyAway: boolean;
  readonly denied: DeniedCount;
}

export const NETWORK_UNUSED: NetworkUse = {
  proxyConnectFailures: 0,
  proxyAway: false,
  denied: NOTHING_DENIED,
};

export interface CommandResult extends NetworkUse {
  /** 128 + N when signal N ended it. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  /** Ended at the sandbox's own limit. */
  readonly outOfMemory: boolean;
  /** Ended below that, as the node had no more. */
  readonly nodeOutOfMemory?: boolean;
  /** Proved: no process of the command is left. */
  readonly empty: boolean;
  readonly peakMemoryBytes: number;
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly droppedOutputBytes: number;
  /** Of them; a plug-in may not tell. */
  readonly droppedStderrBytes?: number;
}

/** What it means that the kernel has killed some of it for want of memory. */
export const memoryEnd = ({
  oomKills,
  limitHits,
}: {
  readonly oomKills: number;
  readonly limitHits: number;
}): Pick<CommandResult, 'outOfMemory' | 'nodeOutOfMemory'> => ({
  outOfMemory: oomKills > 0 && limitHits > 0,
  nodeOutOfMemory: oomKills > 0 && limitHits === 0,
});

export type OutputStream = 'stdout' | 'stderr';
export type OutputSink = (stream: OutputStream, bytes: Uint8Array) => void;
