// Reads every commit of the scheduler's state log as it comes, before a snapshot lets it go: how often each session ended.
import { fromBinary } from '@bufbuild/protobuf';
import { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Change, CommitSchema } from '../../gen/ts/polar/event/v1/state_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';

const LOOK_MS = 300;

export class Witness implements AsyncDisposable {
  /** Commits read. */
  commits = 0;
  /** Schedulers that led, one after another. */
  leaders = 0;
  /** Commits of a scheduler that another one had followed. */
  late = 0;
  /** Session to the times that it ended. */
  readonly ends = new Map<string, number>();
  readonly #bus: Bus;
  /** Sessions that have ended, and how. */
  readonly #ended = new Map<string, string>();
  #epoch = 0n;

  private constructor(bus: Bus) {
    this.#bus = bus;
  }

  static async open(url: string): Promise<Witness> {
    return new Witness(await openBus({ url, name: 'witness' }));
  }

  /** Reads until the signal aborts, and then to the log's end. */
  async run(signal: AbortSignal): Promise<void> {
    for (let last = false; !last; ) {
      last = signal.aborted;
      const end = await this.#end();
      while (this.commits < end && (await this.#read(this.commits + 1))) this.commits++;
      last &&= end > 0 && this.commits === end;
      if (!last) await sleep(LOOK_MS);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#bus.close();
  }

  async #end(): Promise<number> {
    const info = await this.#bus.jsm.streams.info(STREAMS.state.name).catch(() => undefined);
    return info?.state.last_seq ?? 0;
  }

  /** False where it could not be read now. */
  async #read(seq: number): Promise<boolean> {
    const stored = await this.#bus.direct.getMessage(STREAMS.state.name, { seq }).catch(() => undefined);
    if (stored === undefined) return false;
    const { epoch, changes } = fromBinary(CommitSchema, stored.data);
    if (epoch > this.#epoch) this.leaders++;
    if (epoch < this.#epoch) this.late++;
    this.#epoch = epoch > this.#epoch ? epoch : this.#epoch;
    for (const change of changes) this.#see(change);
    return true;
  }

  #see({ kind }: Change): void {
    const session = kind.case === 'session' ? kind.value.session : undefined;
    if (session === undefined) return;
    const { sessionId, state, attempt, outcome } = session;
    const how = `${outcome} in ${attempt}`;
    if (state !== SessionState.ENDED) {
      this.#ended.delete(sessionId);
    } else if (this.#ended.get(sessionId) !== how) {
      this.#ended.set(sessionId, how);
      this.ends.set(sessionId, (this.ends.get(sessionId) ?? 0) + 1);
    }
  }
}
