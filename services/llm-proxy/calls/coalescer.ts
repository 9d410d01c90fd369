// Finds the call in flight that an equal request is to share.
import type { Attempt } from '../attempts/attempt.ts';
import type { Bytes } from '../domain/bytes.ts';
import type { GenerateTarget } from '../domain/paths.ts';
import type { Delivery } from './delivery.ts';

interface InFlight {
  readonly target: GenerateTarget;
  readonly bytes: Bytes;
  readonly delivery: Delivery;
}

export class Coalescer {
  /** At most CALLS_IN_FLIGHT_PER_SESSION_MAX each. */
  readonly #byAttempt = new WeakMap<Attempt, Set<InFlight>>();

  /** The reply in the making for the same bytes in the same form. One that all have left is given up, if not over yet. */
  find(attempt: Attempt, target: GenerateTarget, bytes: Bytes): Delivery | undefined {
    for (const one of this.#byAttempt.get(attempt) ?? []) {
      if (one.delivery.awaited && isSame(one.target, target) && one.bytes.equals(bytes)) return one.delivery;
    }
    return undefined;
  }

  /** Share this reply until it is disposed of. */
  add(attempt: Attempt, target: GenerateTarget, bytes: Bytes, delivery: Delivery): Disposable {
    const inFlight = this.#byAttempt.get(attempt) ?? new Set();
    this.#byAttempt.set(attempt, inFlight);
    const one = { target, bytes, delivery };
    inFlight.add(one);
    return { [Symbol.dispose]: () => void inFlight.delete(one) };
  }
}

const isSame = (a: GenerateTarget, b: GenerateTarget): boolean =>
  a.dialect === b.dialect && a.model === b.model && a.stream === b.stream && a.events === b.events;
