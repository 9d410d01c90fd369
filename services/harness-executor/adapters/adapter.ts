// What the mesh has to know about a harness. One small file each; nothing of a harness is anywhere else.
import type { JsonObject } from '@bufbuild/protobuf';
import type { ExecStep } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { HarnessName } from '../../common/specs/catalogue.ts';
import type { Exit, ExitFacts } from '../domain/exit.ts';

/** Where an installed harness is mounted, under its name. */
export const HARNESS_MOUNT = '/opt/polar/harness';
/** Where the Node that runs npm harnesses is mounted. */
export const NODE_MOUNT = '/opt/polar/node';

/** A program from npm. */
export interface HarnessPackage {
  readonly name: string;
  readonly version: string;
  /** The file to run, below the folder of the installation; also what proves that it is whole. */
  readonly entry: string;
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
  readonly capability: string;
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
  readonly name: HarnessName;
  /** Pinned version of the program; empty where there is none. */
  readonly version: string;
  /** Dialect that it speaks to the proxy; empty where the command decides. */
  readonly dialect: string;
  /** Undefined: nothing to install. */
  readonly install: HarnessPackage | undefined;
  /** Written into the sandbox before the command starts. */
  files(context: HarnessContext): readonly HarnessFile[];
  command(context: HarnessContext): HarnessCommand;
  readExit(facts: ExitFacts): Exit;
}
