// A backend that is found out once it works. Until then it is looked for: a disk that was full at the start has room
// later, and a program that was not there may be installed.
import { sleep } from '../../common/clock.ts';
import type { BackendState } from './backend.ts';

/** Between two looks; doubled each time, up to the second. */
const LOOK_MS = 1_000;
const LOOK_MS_MAX = 60_000;

export type OpenedBackend = BackendState & AsyncDisposable;

export class LookedFor implements AsyncDisposable {
  #opened: OpenedBackend;
  readonly #stop = new AbortController();
  readonly #looking: Promise<void>;

  private constructor(
    opened: OpenedBackend,
    open: () => Promise<OpenedBackend>,
    onFound: (state: BackendState) => void,
  ) {
    this.#opened = opened;
    this.#looking = this.#look(open, onFound);
  }

  /** Resolves after the first look. */
  static async open(
    open: () => Promise<OpenedBackend>,
    onFound: (state: BackendState) => void,
  ): Promise<LookedFor> {
    return new LookedFor(await open(), open, onFound);
  }

  get state(): BackendState {
    return this.#opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#looking;
    await this.#opened[Symbol.asyncDispose]();
  }

  async #look(open: () => Promise<OpenedBackend>, onFound: (state: BackendState) => void): Promise<void> {
    if (!('unavailable' in this.#opened)) return;
    for (let pauseMs = LOOK_MS; 'unavailable' in this.#opened; pauseMs = Math.min(2 * pauseMs, LOOK_MS_MAX)) {
      await sleep(pauseMs, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      await this.#opened[Symbol.asyncDispose]();
      this.#opened = await open();
    }
    onFound(this.#opened);
  }
}
