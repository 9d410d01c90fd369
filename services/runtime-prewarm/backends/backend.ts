// What every backend offers. One exec owns one process tree: when it has ended, nothing of it is left, and that is proved.
import type { PolarError } from '../../common/errors.ts';
import type { Command, CommandResult, OutputSink } from '../domain/command.ts';
import type { GpuGrant } from '../domain/gpus.ts';
import type { FileWrite } from '../domain/paths.ts';
import type { SandboxLimits } from '../domain/plan.ts';
import type { BoxDisk } from '../host/node-disk.ts';

/** One sandbox. */
export interface Box {
  /** Address of the LLM proxy as seen from inside. */
  readonly proxyUrl: string;
  /** Files can be moved only while no command runs. */
  readonly filesNeedIdle: boolean;
  /** Where its files lie, and others' too; absent: nobody knows. */
  readonly disk?: BoxDisk;
  /**
   * Run one command; the caller sees to it that there is one at a time. Throws SANDBOX_FAILED when the sandbox could not
   * start, and the signal's reason when it aborts; the process tree is dead either way.
   */
  exec(command: Command, sink: OutputSink, signal: AbortSignal): Promise<CommandResult>;
  /** Make a folder with its parents. Throws UNSAFE_PATH. */
  makeFolder(path: string): Promise<void>;
  /**
   * Replaces what is there, a link too, and never follows the last one. Throws UNSAFE_PATH, and the signal's reason: it may
   * abort between two files, and nothing is written any more when this has ended.
   */
  putFiles(files: readonly FileWrite[], signal: AbortSignal): Promise<void>;
  /** One regular file. Throws NOT_FOUND, FILE_TOO_LARGE, UNSAFE_PATH. */
  getFile(path: string): Promise<Uint8Array>;
  /**
   * Make what was written the layer `key`; then the sandbox is fit for nothing but `remove`, unless Layers.keepsFirst. No
   * exec runs. The layer's size in bytes; 0: there is no room, it cannot be had of this one or not within `limitMs`, and the
   * sandbox is as it was. Absent: it cannot.
   */
  freeze?(key: string, signal: AbortSignal, limitMs: number): Promise<number>;
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
  /** Of a backend whose sandboxes have them from their creation on; absent: none are claimed for it. */
  readonly grant?: GpuGrant;
  /** 0: no cap. */
  readonly storageMb: number;
}

export interface Backend {
  /** Of the catalogue, or a plug-in's path. */
  readonly name: string;
  /** False: commands see the host's files, processes and network. */
  readonly isolates: boolean;
  /** Names that an image may have. */
  images(): string[];
  /** It may have others too: they are fetched. */
  readonly fetches: boolean;
  /** When its sandboxes get the GPUs that are claimed for them; absent: they are its own matter. */
  readonly gpus?: 'from_creation' | 'by_command';
  /** Others that its sandboxes may be made by. */
  readonly builtOn?: readonly string[];
  /** Keep an image for a sandbox that is to be made of it, until what is returned is called; absent: none ever go. */
  keep?(image: string): () => void;
  /** Absent: each sandbox is prepared. */
  readonly layers?: Layers;
  /** Throws IMAGE_NOT_FOUND, BACKEND_UNAVAILABLE, SANDBOX_FAILED, and the signal's reason. */
  create(spec: BoxSpec, signal: AbortSignal): Promise<Box>;
}

/** Prepared once, cloned many times. */
export interface Layers {
  /** Preparations that take less cost less than a layer does; in ms. */
  readonly worthMs: number;
  /** The sandbox that a layer was made of is as it was. */
  readonly keepsFirst: boolean;
  /** Clones cost next to nothing: they are made as they are asked for, whatever the node's rate is. */
  readonly areFree: boolean;
  /** Names what an image is now. Throws IMAGE_NOT_FOUND. */
  identityOf(image: string, signal: AbortSignal): Promise<string>;
  has(key: string): boolean;
  /**
   * A sandbox that begins with the layer `key`, on the image that had that identity, whatever has its name now; undefined: there is
   * no such layer. Throws as Backend.create.
   */
  clone(key: string, spec: BoxSpec, signal: AbortSignal, identity: string): Promise<Box | undefined>;
}

/** A backend that works here, or why it does not. */
export type BackendState =
  | { readonly name: string; readonly isolates: boolean; readonly backend: Backend }
  | { readonly name: string; readonly isolates: boolean; readonly unavailable: PolarError };
