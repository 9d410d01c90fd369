// A try that holds a place at its engine while it runs.
import { PolarError, type Reason } from '../../common/errors.ts';
import type { Drift } from '../domain/drift.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Tokens } from '../domain/tokens.ts';
import type { Engine } from './engine.ts';
import type { EngineCall } from './engine-call.ts';
import { madeStream, type Taker } from './taker.ts';

export interface Place {
  /** The stream is made from a whole reply. */
  readonly madeStream: boolean;
  /** What the engine samples may be trained. */
  readonly trainable: boolean;
  /** Exactly once, at the end of the try. */
  leave(): void;
  /** The engine has failed this call; whether there is another that has not. */
  failed(): boolean;
}

/** Failures that the next engine need not have. */
const AT_ENGINE: readonly Reason[] = ['ENGINE_UNAVAILABLE', 'ENGINE_STREAM_CUT'];

/** What `Engines` begins. */
export class PlacedCall implements EngineCall {
  readonly #inner: EngineCall;
  readonly #place: Place;

  constructor(inner: EngineCall, place: Place) {
    this.#inner = inner;
    this.#place = place;
  }

  get engine(): Engine {
    return this.#inner.engine;
  }

  get model(): string {
    return this.#inner.model;
  }

  get sent(): JsonObject {
    return this.#inner.sent;
  }

  get tokens(): Tokens {
    return this.#inner.tokens;
  }

  get mode(): 'text' | 'token' {
    return this.#inner.mode;
  }

  get drift(): Drift {
    return this.#inner.drift;
  }

  get trainable(): boolean {
    return this.#place.trainable;
  }

  async whole(signal: AbortSignal): Promise<JsonObject> {
    try {
      return await this.#inner.whole(signal);
    } catch (error) {
      throw failedAt(this.#place, error);
    } finally {
      this.#place.leave();
    }
  }

  async stream(to: Taker<JsonObject>, signal: AbortSignal): Promise<void> {
    try {
      if (this.#place.madeStream) await madeStream(await this.#inner.whole(signal), to);
      else await this.#inner.stream(to, signal);
    } catch (error) {
      throw failedAt(this.#place, error);
    } finally {
      this.#place.leave();
    }
  }
}

/** What a failure at the place is to its call: where another engine is there, it is to be tried again at once. */
export function failedAt(place: Place, error: unknown): unknown {
  if (!(error instanceof PolarError) || !AT_ENGINE.includes(error.reason)) return error;
  if (!place.failed()) return error;
  return new PolarError(error.reason, error.message, { cause: error, retryAfterMs: 0 });
}
