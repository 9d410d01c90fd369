// A trainer that reads and acknowledges the whole stream, with a log of its own that is on disk before it acknowledges.
// It loses its connection now and then, and dies before or behind its log's write.
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { TrajectoryBatch } from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { TRAJECTORY_READ_BYTES_MAX } from '../../services/common/limits.ts';

const CONSUMER = 'storm';
const CUT_SHARE = 0.1;
const PAUSE_MS = 200;
/** A stream of a server that stands still is left. */
const SILENCE_MS = 15_000;

export interface LoggedBatch {
  readonly batchId: string;
  readonly taskId: string;
  readonly groupId: string;
  readonly trajectories: readonly {
    readonly sessionId: string;
    readonly attempt: number;
    readonly outcome: number;
    readonly reward: number | null;
    readonly traces: number;
  }[];
}

export class Trainer {
  /** Batches that came although they are in the log. */
  redelivered = 0;
  /** Of them, those that were not marked as redelivered. */
  unmarked = 0;
  readonly #file: string;
  readonly #random: () => number;
  readonly #client: ReturnType<typeof createServiceClient<typeof TrajectoryService>>;
  readonly #known = new Set<string>();

  constructor(url: string, file: string, random: () => number) {
    this.#client = createServiceClient(TrajectoryService, url, { readMaxBytes: TRAJECTORY_READ_BYTES_MAX });
    this.#file = file;
    this.#random = random;
  }

  /** Reads until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#connection(signal).catch(() => {});
      await sleep(PAUSE_MS, signal);
    }
  }

  /** What its log has. */
  log(): LoggedBatch[] {
    if (this.#known.size === 0) return [];
    const lines = readFileSync(this.#file, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as LoggedBatch);
  }

  /** One connection, to its end. */
  async #connection(signal: AbortSignal): Promise<void> {
    const left = new AbortController();
    const silence = setTimeout(() => left.abort(), SILENCE_MS);
    try {
      const call = { signal: AbortSignal.any([signal, left.signal]) };
      for await (const { batch } of this.#client.streamTrajectories({ consumer: CONSUMER }, call)) {
        silence.refresh();
        if (batch === undefined) continue;
        if (this.#random() < CUT_SHARE) return;
        this.#write(batch);
        if (this.#random() < CUT_SHARE) return;
        await this.#client.ackTrajectories({ consumer: CONSUMER, batchIds: [batch.batchId] }, call);
      }
    } finally {
      clearTimeout(silence);
      left.abort();
    }
  }

  #write(batch: TrajectoryBatch): void {
    const batchId = String(batch.batchId);
    if (this.#known.has(batchId)) {
      this.redelivered++;
      if (!batch.redelivered) this.unmarked++;
      return;
    }
    const file = openSync(this.#file, 'a');
    writeSync(file, `${JSON.stringify(loggedOf(batch))}\n`);
    fsyncSync(file);
    closeSync(file);
    this.#known.add(batchId);
  }
}

function loggedOf({ batchId, taskId, groupId, trajectories }: TrajectoryBatch): LoggedBatch {
  return {
    batchId: String(batchId),
    taskId,
    groupId,
    trajectories: trajectories.map(({ sessionId, attempt, outcome, reward = null, traces }) => ({
      ...{ sessionId, attempt, outcome, reward },
      traces: traces.length,
    })),
  };
}
