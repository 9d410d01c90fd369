// Takes a snapshot when enough was committed since the last one; one at a time, beside the commits.
import { asPolarError, type PolarError } from '../../common/errors.ts';
import { COMMIT_BYTES_PER_SNAPSHOT, COMMITS_PER_SNAPSHOT, STOP_GRACE_MS } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import type { State } from '../domain/state.ts';
import type { Journal } from './journal.ts';
import { writeSnapshot } from './snapshots.ts';

export interface SnapshotterOptions {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly state: State;
  readonly signal: AbortSignal;
  readonly commitsPerSnapshot?: number;
  /** Commits that were read behind the last snapshot. */
  readonly tail: number;
  readonly onWritten: (seq: number, sizeBytes: number) => void;
  /** The next one is tried after as many commits again. */
  readonly onFailed: (error: PolarError) => void;
}

export class Snapshotter {
  readonly #options: SnapshotterOptions;
  readonly #everyCommits: number;
  /** One that has begun is finished while the service stops: nobody would remove its parts. */
  readonly #finishing: AbortSignal;
  #commits: number;
  #bytes = 0;
  #writing: Promise<void> | undefined;

  constructor(options: SnapshotterOptions) {
    this.#options = options;
    this.#everyCommits = options.commitsPerSnapshot ?? COMMITS_PER_SNAPSHOT;
    this.#finishing = lingering(options.signal, STOP_GRACE_MS);
    this.#commits = -options.tail;
  }

  /** To be called after every commit. */
  afterCommit(journal: Journal): void {
    const { commits, bytes } = journal.written;
    const due =
      commits - this.#commits >= this.#everyCommits || bytes - this.#bytes >= COMMIT_BYTES_PER_SNAPSHOT;
    if (!due || this.#writing !== undefined || this.#options.signal.aborted) return;
    this.#commits = commits;
    this.#bytes = bytes;
    this.#writing = this.#write(journal).finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when none is being written. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  async #write(journal: Journal): Promise<void> {
    const { bus, blobs, state, signal, onWritten, onFailed } = this.#options;
    const seq = journal.appliedSeq;
    // Records never change in place, so a list of them is the state of this moment.
    const changes = [...state.changes()];
    try {
      onWritten(seq, await writeSnapshot(bus, blobs, seq, changes, this.#finishing));
    } catch (error) {
      if (!signal.aborted) onFailed(asPolarError(error));
    }
  }
}

/** Aborts `ms` after the other one. */
function lingering(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  const later = (): void => void setTimeout(() => late.abort(signal.reason), ms).unref();
  signal.addEventListener('abort', later, { once: true });
  return late.signal;
}
