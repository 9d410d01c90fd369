// The state log in use: taken over, written by group commit, snapshotted.
import { sleep } from '../../common/clock.ts';
import { asPolarError, type PolarError } from '../../common/errors.ts';
import { STATE_LOG_CHECK_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import type { State } from '../domain/state.ts';
import * as events from '../events.ts';
import { Journal, type JournalOptions } from './journal.ts';
import { Snapshotter } from './snapshotter.ts';
import { takeOver } from './take-over.ts';

export interface StateLogOptions extends Pick<JournalOptions, 'onCommitted' | 'onFailed' | 'signal'> {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly log: Logger;
  /** Who takes over. */
  readonly holder: string;
  /** Commits between two snapshots; default COMMITS_PER_SNAPSHOT. */
  readonly commitsPerSnapshot?: number;
}

export interface StateLog {
  readonly state: State;
  readonly journal: Journal;
  /** False when another scheduler has taken over, which closes the journal, or when NATS does not answer. */
  checkEpoch(): Promise<boolean>;
  /** Tells now and then of a log that does not answer, until the signal aborts and no snapshot is being written. */
  run(): Promise<void>;
}

export async function openStateLog(options: StateLogOptions): Promise<StateLog> {
  const { bus, blobs, log, signal, onCommitted, onFailed, holder, commitsPerSnapshot } = options;
  const begun = performance.now();
  const { chain, state, epoch, tail } = await takeOver(bus, blobs, holder, signal);
  events.tookOver(log, {
    epoch,
    tail,
    tasks: state.tasks.size,
    live_sessions: state.liveSessions,
    duration_ms: Math.round(performance.now() - begun),
  });
  const snapshotter = new Snapshotter({
    bus,
    blobs,
    state,
    signal,
    tail,
    ...(commitsPerSnapshot !== undefined && { commitsPerSnapshot }),
    onWritten: (seq, sizeBytes) => events.snapshotWritten(log, seq, sizeBytes),
    onFailed: (error) => events.snapshotFailed(log, error),
  });
  const journal: Journal = new Journal({
    chain,
    state,
    epoch,
    signal,
    onCommitted,
    onFailed,
    afterCommit: () => snapshotter.afterCommit(journal),
  });
  const checkEpoch = async (): Promise<boolean> => {
    try {
      await chain.verify();
      return true;
    } catch (thrown) {
      const error: PolarError = asPolarError(thrown);
      if (error.reason === 'STATE_FENCED') journal.close(error);
      return false;
    }
  };
  return {
    state,
    journal,
    checkEpoch,
    async run() {
      while (!signal.aborted) {
        await sleep(STATE_LOG_CHECK_MS, signal);
        if (chain.problem !== undefined) events.stateLogWaits(log, chain.problem);
      }
      await snapshotter.idle();
    },
  };
}
