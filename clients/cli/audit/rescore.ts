// Scores the trained ids of a session's traces again: one request a trace, since what precedes each call in its trace is
// what it was served.
import { asPolarError } from '../../../services/common/errors.ts';
import { Differences, type Distribution } from './differences.ts';
import type { RecordedCall } from './record.ts';
import type { Score } from './scoring.ts';
import type { TraceView } from './trace-view.ts';

/** What is needed of a call, without its ids. */
export type Origin = Pick<
  RecordedCall,
  'call_id' | 'engine' | 'logprob_mode' | 'model' | 'policy_version'
> & {
  /** Its logprobs are those that reading the ids gives. */
  readonly comparable: boolean;
};

export interface RescoreRow extends Distribution {
  readonly engine: string;
  readonly logprob_mode: string;
  readonly policy_version: number;
}

/** A trace that the engine did not score. */
export interface NotScored {
  readonly session_id: string;
  readonly trace: number;
  /** Its trained ids. */
  readonly ids: number;
  readonly message: string;
}

export function originOf(call: RecordedCall): Origin {
  const { call_id, engine, logprob_mode, model, policy_version } = call;
  return { call_id, engine, logprob_mode, model, policy_version, comparable: isComparable(call) };
}

/** Those after bias and temperature only where these change nothing. */
function isComparable({ logprob_mode, sampling }: RecordedCall): boolean {
  if (logprob_mode !== 'processed') return true;
  const temperature = sampling['temperature'] ?? 1;
  const biased = Object.keys((sampling['logit_bias'] ?? {}) as object).length > 0;
  return (temperature === 1 || temperature === 0) && !biased;
}

/** Collects over any number of sessions. */
export class Rescoring {
  #score: Score;
  readonly #rows = new Map<string, { origin: Origin; differences: Differences }>();
  /** Ids that cannot be compared. */
  notComparable = 0;
  readonly notScored: NotScored[] = [];

  constructor(score: Score) {
    this.#score = score;
  }

  async add(
    sessionId: string,
    traces: readonly TraceView[],
    origins: ReadonlyMap<string, Origin>,
  ): Promise<void> {
    for (const trace of traces) await this.#addTrace(sessionId, trace, origins);
  }

  /** By engine, mode and policy version. */
  rows(): RescoreRow[] {
    return [...this.#rows.values()].flatMap(({ origin, differences }) => {
      const distribution = differences.distribution();
      if (distribution === undefined) return [];
      const { engine, logprob_mode, policy_version } = origin;
      return [{ engine, logprob_mode, policy_version, ...distribution }];
    });
  }

  async #addTrace(sessionId: string, trace: TraceView, origins: ReadonlyMap<string, Origin>): Promise<void> {
    const wanted = trace.trainedPlaces().flatMap((place) => {
      const call = trace.callAt(place);
      const origin = call && origins.get(call.callId);
      if (origin?.comparable !== true) return [];
      return [{ place, index: call?.index ?? 0, origin }];
    });
    this.notComparable += trace.trainedPlaces().length - wanted.length;
    const [first] = wanted;
    if (first === undefined) return;
    const places = wanted.map(({ place }) => place);
    const head = { session_id: sessionId, trace: trace.number, ids: places.length };
    const scored = await this.#score(first.origin.model, trace.ids, places).catch((error: unknown) =>
      this.#leaveOut(head, error),
    );
    if (scored === undefined) return;
    for (const [i, { place, index, origin }] of wanted.entries()) {
      this.#rowOf(origin).add(sessionId, {
        callId: origin.call_id,
        trace: trace.number,
        index,
        recorded: trace.logprobAt(place),
        again: scored[i] ?? Number.NaN,
      });
    }
  }

  /** The audit goes on: what the records say of the other sessions is worth as much. */
  #leaveOut(trace: Omit<NotScored, 'message'>, thrown: unknown): undefined {
    const error = asPolarError(thrown);
    const { reason, message } = error;
    if (reason !== 'ENGINE_ERROR' && reason !== 'ENGINE_UNAVAILABLE') throw thrown;
    // It is asked no more: each further trace could wait as long.
    if (reason === 'ENGINE_UNAVAILABLE') this.#score = () => Promise.reject(error);
    this.notScored.push({ ...trace, message: `${reason}: ${message}` });
  }

  #rowOf(origin: Origin): Differences {
    const key = JSON.stringify([origin.engine, origin.logprob_mode, origin.policy_version]);
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = { origin, differences: new Differences() };
      this.#rows.set(key, row);
    }
    return row.differences;
  }
}
