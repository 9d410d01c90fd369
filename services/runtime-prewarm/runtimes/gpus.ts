// The GPUs of this node: an attempt that asks for some has them alone, for as long as one of its sandboxes needs them. Who has
// which is in a file, so that the next manager gives none away that a container of this one may still have.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { abortable, withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { GpuBook, type GpuGrant, type GpuHolder } from '../domain/gpus.ts';

/** Longest wait for GPUs that others have: the scheduler gives no session more than are free, so they are about to be. */
const WAIT_MS = 60_000;
/** What has them when its manager has ended. */
const LEFT = 'left';

export interface GpusOptions {
  readonly file: string;
  readonly all: GpuGrant;
  /** Nobody claims any. */
  readonly shared: boolean;
  /** Backends whose sandboxes may outlive a manager: they say when none is left. */
  readonly outliving: readonly string[];
}

/** GPUs of one sandbox. */
export interface GpuClaim extends GpuGrant {
  /** The sandbox needs them no more: nothing of it runs. */
  release(): void;
  /** The same of one that could not be removed: they are free when its backend has nothing left. */
  leave(): void;
}

interface Waiter {
  readonly holder: GpuHolder;
  readonly count: number;
  readonly granted: () => void;
  readonly failed: (why: unknown) => void;
}

export class NodeGpus {
  readonly all: GpuGrant;
  readonly shared: boolean;
  readonly #file: string;
  readonly #outliving: readonly string[];
  readonly #book: GpuBook;
  /** Sandboxes by owner. */
  readonly #claims = new Map<string, number>();
  /** Owners one of whose sandboxes could not be removed. */
  readonly #stuck = new Set<string>();
  /** In the order in which they came: a large one is not passed by small ones for ever. */
  #waiting: Waiter[] = [];

  constructor({ file, all, shared, outliving }: GpusOptions) {
    this.all = all;
    this.shared = shared;
    this.#file = file;
    this.#outliving = outliving;
    const left = Object.entries(read(file)).map(([id, holder]) => [id, this.#leftOf(holder)] as const);
    const held = left.filter(([, { backends }]) => backends.length > 0);
    this.#book = new GpuBook(all.gpus, shared ? {} : Object.fromEntries(held));
  }

  get free(): number {
    return this.shared ? this.all.gpus.length : this.#book.free.length;
  }

  /** Throws BACKEND_UNAVAILABLE where this node has not so many. */
  check(count: number, backend: string): void {
    const has = this.all.gpus.length;
    if (count <= has || this.#isEngines(backend)) return;
    throw new PolarError('BACKEND_UNAVAILABLE', `runtime.gpus: ${count} are asked for, this node has ${has}`);
  }

  /**
   * For one sandbox: those that others of its owner have, or as many of its own. Throws SANDBOX_FAILED where none become free, and
   * the signal's reason.
   */
  async claim({ owner, backends }: GpuHolder, count: number, signal: AbortSignal): Promise<GpuClaim> {
    if (this.shared) return { ...this.#sharedBy(backends, count), release() {}, leave() {} };
    // What asks for another number has its own.
    const holder = { owner: `${owner}/${count}`, backends };
    // Before it has them: another sandbox of the owner, that has, may go meanwhile.
    this.#claims.set(holder.owner, (this.#claims.get(holder.owner) ?? 0) + 1);
    let isHeld = true;
    const end = (isGone: boolean): void => {
      if (isHeld) this.#end(holder, isGone);
      isHeld = false;
    };
    try {
      await this.#take(holder, count, signal);
    } catch (error) {
      end(true);
      throw error;
    }
    const grant = { ...this.all, gpus: this.#book.of(holder.owner) };
    return { ...grant, release: () => end(true), leave: () => end(false) };
  }

  /** Nothing is left of what sandboxes of that backend had when they could not be removed, or their manager ended. */
  nothingLeft(backend: string): void {
    this.#book.nothingLeft(LEFT, backend);
    this.#freed();
  }

  /** What is left of the others is folders: their processes were seen to end. */
  #leftOf({ backends }: GpuHolder): GpuHolder {
    return { owner: LEFT, backends: backends.filter((one) => this.#outliving.includes(one)) };
  }

  /** Docker chooses them itself, and may have some that nobody has named. */
  #isEngines(backend: string | undefined): boolean {
    return this.shared && backend === 'docker' && !this.all.asFiles;
  }

  #sharedBy([backend]: readonly string[], count: number): GpuGrant {
    return { ...this.all, gpus: this.#isEngines(backend) ? [] : this.all.gpus.slice(0, count) };
  }

  async #take(holder: GpuHolder, count: number, signal: AbortSignal): Promise<void> {
    const has = this.#book.of(holder.owner).length > 0;
    if (has || (this.#waiting.length === 0 && this.#taken(holder, count))) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { holder, count, granted: resolve, failed: reject };
    this.#waiting.push(waiter);
    try {
      await abortable(promise, withTimeout(WAIT_MS, signal));
    } catch (error) {
      this.#waiting = this.#waiting.filter((one) => one !== waiter);
      this.#serve();
      signal.throwIfAborted();
      if (error instanceof PolarError) throw error;
      const what = `${count} GPUs did not become free within ${WAIT_MS} ms`;
      throw new PolarError('SANDBOX_FAILED', `${what}: ${this.free} of ${this.all.gpus.length} are`);
    }
  }

  /** False: there are too few. Throws SANDBOX_FAILED where it cannot be written down. */
  #taken(holder: GpuHolder, count: number): boolean {
    // Another sandbox of the same owner may have come first.
    if (this.#book.of(holder.owner).length > 0) return true;
    if (this.#book.take(holder, count) === undefined) return false;
    try {
      this.#write();
      return true;
    } catch (error) {
      this.#book.giveBack((one) => one === holder);
      throw new PolarError('SANDBOX_FAILED', `GPUs cannot be claimed: ${(error as Error).message}`);
    }
  }

  #end(holder: GpuHolder, isGone: boolean): void {
    const { owner } = holder;
    const leaving = this.#leftOf(holder);
    if (!isGone && leaving.backends.length > 0) this.#stuck.add(owner);
    const left = (this.#claims.get(owner) ?? 1) - 1;
    if (left > 0) return void this.#claims.set(owner, left);
    this.#claims.delete(owner);
    if (this.#stuck.delete(owner)) this.#book.pass(owner, leaving);
    else this.#book.giveBack((one) => one.owner === owner);
    this.#freed();
  }

  #freed(): void {
    this.#serve();
    try {
      this.#write();
    } catch {
      // Its disk is full: the file says that somebody has them, until the next change.
    }
  }

  #serve(): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      try {
        if (!this.#taken(first.holder, first.count)) return;
        first.granted();
      } catch (error) {
        first.failed(error);
      }
      this.#waiting.shift();
    }
  }

  /** Throws what the file system does. */
  #write(): void {
    writeFileSync(`${this.#file}.part`, JSON.stringify(this.#book.held));
    renameSync(`${this.#file}.part`, this.#file);
  }
}

function read(file: string): Record<string, GpuHolder> {
  try {
    const held: Record<string, GpuHolder & { backend?: string }> = JSON.parse(readFileSync(file, 'utf8'));
    // One backend alone was written before they could be several.
    const holders = Object.entries(held).map(([id, { owner, backend = '', backends = [backend] }]) => {
      return [id, { owner, backends }];
    });
    return Object.fromEntries(holders);
  } catch {
    return {};
  }
}
