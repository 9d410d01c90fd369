// What every backend offers. One exec owns one process tree: when it has ended, nothing of it is left, and that is proved.
import type { PolarError } from '../../common/errors.ts';
import type { BackendName } from '../../common/specs/catalogue.ts';
import type { Command, CommandResult, OutputSink } from '../domain/command.ts';
import type { FileWrite } from '../domain/paths.ts';
import type { SandboxLimits } from '../domain/plan.ts';

/** One sandbox. */
export interface Box {
  /** Address of the LLM proxy as seen from inside. */
  readonly proxyUrl: string;
  /** Files can be moved only while no command runs. */
  readonly filesNeedIdle: boolean;
  /**
   * Run one command; the caller sees to it that there is one at a time. Throws SANDBOX_FAILED when the sandbox could not
   * start, and the signal's reason when it aborts; the process tree is dead either way.
   */
  exec(command: Command, sink: OutputSink, signal: AbortSignal): Promise<CommandResult>;
  /** Make a folder with its parents. Throws UNSAFE_PATH. */
  makeFolder(path: string): Promise<void>;
  /** Throws UNSAFE_PATH; replaces what is there, a link too, and never follows the last one. */
  putFiles(files: readonly FileWrite[]): Promise<void>;
  /** One regular file. Throws NOT_FOUND, FILE_TOO_LARGE, UNSAFE_PATH. */
  getFile(path: string): Promise<Uint8Array>;
  /**
   * Make what was written the layer `key`; then the sandbox is fit for nothing but `remove`. No exec runs. The layer's size
   * in bytes; 0: there is no room, and the sandbox is as it was. Absent: it cannot.
   */
  freeze?(key: string): Promise<number>;
  /** Delete it. No exec runs. */
  remove(): Promise<void>;
}

export interface BoxSpec {
  /** Unique; a file name. */
  readonly id: string;
  /** Empty: of none. */
  readonly session: string;
  readonly image: string;
  readonly limits: SandboxLimits;
  readonly gpus: number;
  /** 0: no cap. */
  readonly storageMb: number;
}

export interface Backend {
  readonly name: BackendName;
  /** False: commands see the host's files, processes and network. */
  readonly isolates: boolean;
  /** Names that an image may have. */
  images(): string[];
  /** Absent: each sandbox is prepared. */
  readonly layers?: Layers;
  /** Throws IMAGE_NOT_FOUND, BACKEND_UNAVAILABLE, SANDBOX_FAILED, and the signal's reason. */
  create(spec: BoxSpec, signal: AbortSignal): Promise<Box>;
}

/** Prepared once, cloned many times. */
export interface Layers {
  /** Names what an image is now. Throws IMAGE_NOT_FOUND. */
  identityOf(image: string): Promise<string>;
  /** A sandbox that begins with the layer `key`; undefined: there is no such layer. */
  clone(key: string, spec: BoxSpec): Promise<Box | undefined>;
}

/** A backend that works here, or why it does not. */
export type BackendState =
  | { readonly name: BackendName; readonly isolates: boolean; readonly backend: Backend }
  | { readonly name: BackendName; readonly isolates: boolean; readonly unavailable: PolarError };
