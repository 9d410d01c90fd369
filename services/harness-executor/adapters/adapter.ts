// What the mesh has to know about a harness. One small file each; nothing of a harness is anywhere else.
import type { JsonObject } from '@bufbuild/protobuf';
import type { ExecStep, McpServer } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { Exit, ExitFacts } from '../domain/exit.ts';

/** Where an installed harness is mounted, under its name. */
export const HARNESS_MOUNT = '/opt/polar/harness';
/** Where the Node that runs npm harnesses is mounted. */
export const NODE_MOUNT = '/opt/polar/node';
/** The Node that runs npm harnesses. */
export const NODE = `${NODE_MOUNT}/bin/node`;

/** A program from npm, or from PyPI where `requirements` is set. */
export interface HarnessPackage {
  readonly name: string;
  readonly version: string;
  /** The file to run, below the folder of the installation; also what proves that it is whole. */
  readonly entry: string;
  /** A file that lists all that is installed, with versions: for each version of Python that a sandbox has. */
  readonly requirements?: string;
  /** Oldest Python that a program from PyPI runs on, as `3.12`; default: any Python 3. */
  readonly pythonMin?: string;
  /** The one install script, below the folder of the installation, without which the program refuses to work. */
  readonly script?: string;
}

export interface HarnessContext {
  readonly instruction: string;
  /** As the task names it; may be empty. */
  readonly modelName: string;
  /** The task's settings, checked at submit. */
  readonly settings: JsonObject;
  /** Set with `shell` only. */
  readonly step: ExecStep | undefined;
  /** Base URL of the session at the proxy, with `/v1`. */
  readonly openaiUrl: string;
  /** The same without `/v1`. */
  readonly sessionUrl: string;
  readonly capability: string;
  /** The sandbox's Python that a program from PyPI runs on, as a path there; empty with others. */
  readonly python: string;
  /** Empty where the adapter takes none. */
  readonly mcpServers: readonly McpServer[];
}

export interface HarnessFile {
  /** Absolute in the sandbox. */
  readonly path: string;
  readonly content: string;
}

export interface HarnessCommand {
  readonly argv: readonly string[];
  /** The command's own variables: above the task's. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute; undefined: the runtime's workdir. */
  readonly cwd?: string;
  readonly stdin?: string;
}

export interface Adapter {
  readonly name: string;
  /** Pinned version of the program; empty where there is none. */
  readonly version: string;
  /** Dialect that it speaks to the proxy; empty where the command decides. */
  readonly dialect: string;
  /** Undefined: nothing to install. */
  readonly install: HarnessPackage | undefined;
  /** Files and folders of the sandbox in which it keeps a record of its session. */
  readonly transcripts: readonly string[];
  /** Folder in the sandbox in which it finds skills; undefined: it takes none. */
  readonly skillsDir: string | undefined;
  /** Written into the sandbox before the command starts. */
  files(context: HarnessContext): readonly HarnessFile[];
  command(context: HarnessContext): HarnessCommand;
  readExit(facts: ExitFacts): Exit;
}

/** What an endpoint with one model is asked for where a task names none. */
const MODEL_DEFAULT = 'policy';

export const modelOf = ({ modelName }: HarnessContext): string => modelName || MODEL_DEFAULT;

/** The file to run, as the sandbox sees it. */
export const programOf = (harness: string, { entry }: HarnessPackage): string =>
  `${HARNESS_MOUNT}/${harness}/${entry}`;
