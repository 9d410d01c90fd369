// Where calls wait while they are held, and where those at engines are counted and, if the pause wants it, given up.
import { PauseMode } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { abortable } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { CALLS_WAITING_MAX } from '../../common/limits.ts';
import type { PolicyState } from '../../common/nats/policy.ts';
import { isServing, type Version } from '../domain/policy.ts';

/** A try at an engine, from the gate to its end. */
export interface Passage extends Disposable {
  /** Aborts when the call's does, and with POLICY_PAUSED when the pause gives up what is in flight. */
  readonly signal: AbortSignal;
  /** What was served when it began. */
  readonly version: Version;
}

/** A call, as far as it can be held. */
export interface Holdable {
  /** Of its try now: another one once that was given up. */
  readonly signal: AbortSignal;
  /** The try now is over, for this reason; the call itself is not. */
  giveUp(why: PolarError): void;
  /** Its clock stands still until this is disposed of. */
  hold(): Disposable;
}

interface InFlight {
  readonly call: Holdable;
  /** Set while the engine keeps it across a pause. */
  held: Disposable | undefined;
}

export class Gate {
  readonly #onIdle: () => void;
  readonly #inFlight = new Set<InFlight>();
  #waiting = 0;
  #state: PolicyState | undefined;
  /** Resolves when calls go on; unset while they do. */
  #closed: PromiseWithResolvers<void> | undefined;

  /** `onIdle` hears when the last call in flight has ended while calls are held. */
  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Go by this from now on. */
  apply(state: PolicyState): void {
    const began = !isServing(state.policy) && this.#state?.policy.pauseId !== state.policy.pauseId;
    this.#state = state;
    if (isServing(state.policy)) {
      this.#closed?.resolve();
      this.#closed = undefined;
      for (const one of this.#inFlight) release(one);
      return;
    }
    this.#closed ??= Promise.withResolvers();
    if (!began) return;
    if (state.policy.mode === PauseMode.ABORT_AND_RETRY) this.#giveUp();
    if (state.policy.mode === PauseMode.KEEP) for (const one of this.#inFlight) one.held ??= one.call.hold();
  }

  #giveUp(): void {
    const why = new PolarError(
      'POLICY_PAUSED',
      'the reply was given up for a change of weights; call again',
      {
        retryAfterMs: 1_000,
      },
    );
    for (const { call } of [...this.#inFlight]) call.giveUp(why);
  }

  /** Resolves when calls are not held. Throws CALLS_IN_FLIGHT_LIMIT, the signal's reason. */
  async enter(call: Holdable): Promise<Passage> {
    while (this.#closed !== undefined) await this.#wait(this.#closed.promise, call);
    call.signal.throwIfAborted();
    return this.#pass(call);
  }

  async #wait(opened: Promise<void>, call: Holdable): Promise<void> {
    if (this.#waiting >= CALLS_WAITING_MAX) {
      const message = `${CALLS_WAITING_MAX} calls wait for the end of a pause`;
      throw new PolarError('CALLS_IN_FLIGHT_LIMIT', message, { retryAfterMs: 1_000 });
    }
    using _ = call.hold();
    this.#waiting++;
    try {
      await abortable(opened, call.signal);
    } finally {
      this.#waiting--;
    }
  }

  #pass(call: Holdable): Passage {
    const inFlight: InFlight = { call, held: undefined };
    this.#inFlight.add(inFlight);
    const { policyVersion = 0n, weightVersion = '' } = this.#state?.policy ?? {};
    return {
      signal: call.signal,
      version: { policyVersion, weightVersion },
      [Symbol.dispose]: () => {
        release(inFlight);
        this.#inFlight.delete(inFlight);
        if (this.#inFlight.size === 0 && this.#closed !== undefined) this.#onIdle();
      },
    };
  }
}

function release(one: InFlight): void {
  one.held?.[Symbol.dispose]();
  one.held = undefined;
}
