// Room for tasks in memory: beside what is there, what is on its way into the log counts.
import type { Change } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../../common/errors.ts';
import { LIVE_SESSIONS_MAX, LIVE_SPECS_BYTES_MAX } from '../../common/limits.ts';
import type { State } from '../domain/state.ts';
import { recordBytes } from '../domain/task.ts';

export class Room {
  readonly #state: Pick<State, 'sessions' | 'specsBytes'>;
  readonly #specsBytesMax: number;
  #sessions = 0;
  #specsBytes = 0;

  constructor(state: Pick<State, 'sessions' | 'specsBytes'>, specsBytesMax = LIVE_SPECS_BYTES_MAX) {
    this.#state = state;
    this.#specsBytesMax = specsBytesMax;
  }

  /** Throws LIVE_SESSIONS_LIMIT where so much more may not be live. */
  check(sessions: number, specsBytes = 0): void {
    const limit =
      this.#state.sessions + this.#sessions + sessions > LIVE_SESSIONS_MAX
        ? `LIVE_SESSIONS_MAX (${LIVE_SESSIONS_MAX}) sessions`
        : this.#state.specsBytes + this.#specsBytes + specsBytes > this.#specsBytesMax
          ? `LIVE_SPECS_BYTES_MAX (${this.#specsBytesMax}) bytes of task specs`
          : undefined;
    if (limit === undefined) return;
    throw new PolarError('LIVE_SESSIONS_LIMIT', `at most ${limit} may be live: wait for some to end`);
  }

  /** Holds room for the tasks of changes until `commit` has put them there. Throws LIVE_SESSIONS_LIMIT. */
  async hold(changes: readonly Change[], commit: () => Promise<void>): Promise<void> {
    const records = changes.flatMap(({ kind }) => (kind.case === 'task' ? [kind.value] : []));
    const sessions = records.reduce((sum, { numSamples }) => sum + numSamples, 0);
    const specsBytes = records.reduce((sum, record) => sum + recordBytes(record), 0);
    this.check(sessions, specsBytes);
    this.#sessions += sessions;
    this.#specsBytes += specsBytes;
    try {
      await commit();
    } finally {
      this.#sessions -= sessions;
      this.#specsBytes -= specsBytes;
    }
  }
}
