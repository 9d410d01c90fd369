// One leased sandbox.
import { abortable, withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { RUNTIME_CLEAR_MS } from '../../common/limits.ts';
import type { Box } from '../backends/backend.ts';
import type { Command, CommandLimit, CommandResult, OutputSink } from '../domain/command.ts';
import { Denials } from '../domain/denials.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import type { FileWrite } from '../domain/paths.ts';
import type { SandboxPlan } from '../domain/plan.ts';
import { NodeDisk } from '../host/node-disk.ts';
import type { RuntimeGpus } from './runtime-gpus.ts';

const MIB = 1024 * 1024;

/** What goes on in a sandbox. */
interface Work {
  readonly done: Promise<unknown>;
  /** Of a command. Files are moved to the end, whoever has left. */
  readonly caller: AbortSignal | undefined;
}

export class Runtime {
  readonly id: string;
  readonly plan: SandboxPlan;
  readonly options: AcquireOptions;
  /** End of its lease by a steady clock: the time of day may be set while it runs. */
  #leaseEndMs = Number.POSITIVE_INFINITY;
  /** False: its commands see the host's files, processes and network. */
  readonly isolated: boolean;
  /** What the steps of its preparation took. */
  stepsMs = 0;
  /** Of all commands until now. */
  readonly denied = new Denials();
  readonly #box: Box;
  readonly #disk: NodeDisk | undefined;
  readonly #gone = new AbortController();
  #gpus: RuntimeGpus | undefined;
  #limit: CommandLimit | undefined;
  #running: Work | undefined;
  /** Files that are moved beside it. */
  readonly #moving = new Set<Promise<unknown>>();

  constructor(id: string, plan: SandboxPlan, options: AcquireOptions, box: Box, isolated: boolean) {
    this.id = id;
    this.plan = plan;
    this.options = options;
    this.#box = box;
    this.#disk = box.disk && new NodeDisk(box.disk);
    this.isolated = isolated;
  }

  /** From now on: commands of its preparation have none, where it has not had them from its creation on. */
  giveGpus(gpus: RuntimeGpus): void {
    this.#gpus = gpus;
  }

  /** Count the lease anew, from now on. */
  lease(ms: number): void {
    this.#leaseEndMs = performance.now() + ms;
  }

  /** Milliseconds; 0 or less when the lease has ended. */
  get leaseLeftMs(): number {
    return this.#leaseEndMs - performance.now();
  }

  get proxyUrl(): string {
    return this.#box.proxyUrl;
  }

  /**
   * Files, then one command: from its call on its limit can be counted anew. Throws what putFiles throws,
   * RUNTIME_BUSY while another command runs, RUNTIME_LOST when the sandbox is removed meanwhile, SANDBOX_FAILED where
   * the node has run out of memory, or its disk is full at its end: whatever came of it, it may be for that alone. A command whose caller has left is
   * waited for: it is being killed.
   */
  async exec(
    command: Command,
    sink: OutputSink,
    signal: AbortSignal,
    files: readonly FileWrite[] = [],
  ): Promise<CommandResult> {
    const env = { ...command.defaultEnv, ...this.plan.env, ...command.env };
    return await this.#alone(async (gone) => {
      this.#limit = command.limit;
      if (files.length > 0) await this.#box.putFiles(files, gone);
      const all = AbortSignal.any([signal, gone]);
      const gpus = await this.#gpus?.granted(all);
      const result = await this.#box.exec({ ...command, env, ...(gpus && { gpus }) }, sink, all);
      this.denied.add(result.denied);
      refuseStarved(result, this.plan);
      await this.#disk?.refuseFull(gone);
      return result;
    }, signal);
  }

  /** Count the limit of the running command anew. False: nothing runs. */
  limit(ms: number): boolean {
    if (this.#running === undefined || this.#limit === undefined) return false;
    this.#limit.renew(ms);
    return true;
  }

  async makeFolder(path: string): Promise<void> {
    await this.#files(() => this.#box.makeFolder(path));
  }

  async putFiles(files: readonly FileWrite[]): Promise<void> {
    await this.#files((gone) => this.#box.putFiles(files, gone));
  }

  async getFile(path: string): Promise<Uint8Array> {
    return await this.#files(() => this.#box.getFile(path));
  }

  /** See Box.freeze; 0 where the sandbox cannot. */
  async freeze(key: string, signal: AbortSignal, limitMs: number): Promise<number> {
    return await this.#alone(
      async (gone) => (await this.#box.freeze?.(key, AbortSignal.any([signal, gone]), limitMs)) ?? 0,
    );
  }

  /** End what runs, then delete the sandbox. */
  async remove(why: PolarError): Promise<void> {
    this.#gone.abort(why);
    await Promise.allSettled([this.#running?.done, ...this.#moving]);
    this.#gpus?.idle();
    try {
      await this.#box.remove();
      this.#gpus?.release();
    } catch (error) {
      this.#gpus?.leave();
      throw error;
    }
  }

  async #files<T>(work: (gone: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#box.filesNeedIdle) return await this.#alone(work);
    const { signal } = this.#gone;
    signal.throwIfAborted();
    const moved = work(signal);
    this.#moving.add(moved);
    try {
      return await moved;
    } finally {
      this.#moving.delete(moved);
    }
  }

  /** Waits for what ends by itself; throws RUNTIME_BUSY where that is a command that somebody waits for. */
  async #alone<T>(work: (gone: AbortSignal) => Promise<T>, caller?: AbortSignal): Promise<T> {
    let late: AbortSignal | undefined;
    while (this.#running !== undefined) {
      late ??= withTimeout(RUNTIME_CLEAR_MS, caller);
      if (!isEnding(this.#running) || late.aborted) {
        throw new PolarError(
          'RUNTIME_BUSY',
          `runtime ${this.id} is busy with another command: one at a time`,
        );
      }
      await abortable(this.#running.done, late).catch(() => {});
      caller?.throwIfAborted();
    }
    this.#gone.signal.throwIfAborted();
    const done = work(this.#gone.signal);
    this.#running = { done, caller };
    try {
      return await done;
    } finally {
      this.#running = undefined;
    }
  }
}

/** Throws SANDBOX_FAILED where the kernel killed some of a command that had not reached its own limit. */
function refuseStarved({ nodeOutOfMemory, peakMemoryBytes }: CommandResult, { limits }: SandboxPlan): void {
  if (nodeOutOfMemory !== true) return;
  const [peak, limit] = [peakMemoryBytes, limits.memoryBytes].map((bytes) => Math.round(bytes / MIB));
  throw new PolarError(
    'SANDBOX_FAILED',
    `ENOMEM: the node is out of memory: its kernel killed a command that had ${peak} of its ${limit} MiB`,
  );
}

const isEnding = ({ caller }: Work): boolean => caller === undefined || caller.aborted;
