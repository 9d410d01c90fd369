// Images that are fetched from a registry: all who need the same one wait for one fetch, which goes on when they leave.
import { abortable } from '../../../common/clock.ts';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { isRefused } from '../../domain/pull-failure.ts';
import type { Engine } from './engine.ts';

/** Longest that the fetch of one image may take. */
const PULL_MS = 1_800_000;

export class Pulls {
  readonly #engine: Engine;
  readonly #onPulled: (name: string) => Promise<void>;
  readonly #running = new Map<string, Promise<void>>();

  /** `onPulled`: called with what was fetched, before anybody is told of it, and whoever has left. */
  constructor(engine: Engine, onPulled: (name: string) => Promise<void>) {
    this.#engine = engine;
    this.#onPulled = onPulled;
  }

  /**
   * Resolves when the image has been fetched. Throws the signal's reason, IMAGE_NOT_FOUND where the registry refuses it, and
   * SANDBOX_FAILED where another try, or another node, may do better.
   */
  async fetch(name: string, signal: AbortSignal): Promise<void> {
    let pull = this.#running.get(name);
    if (pull === undefined) {
      pull = this.#pull(name).finally(() => this.#running.delete(name));
      pull.catch(() => {});
      this.#running.set(name, pull);
    }
    await abortable(pull, signal);
  }

  /** The engine answers with success and tells a failure as the last of its progress. */
  async #pull(name: string): Promise<void> {
    // Without a tag the engine would fetch every one there is.
    const whole = /[:@][^/]*$/.test(name) ? name : `${name}:latest`;
    const path = `/images/create?fromImage=${encodeURIComponent(whole)}`;
    try {
      const said = await this.#engine.text('POST', path, { limitMs: PULL_MS });
      const fault = /"error":"((?:[^"\\]|\\.)*)"/.exec(said)?.[1];
      if (fault !== undefined) throw new Error(fault);
      await this.#onPulled(name);
    } catch (error) {
      const { message } = asPolarError(error);
      const reason = isRefused(message) ? 'IMAGE_NOT_FOUND' : 'SANDBOX_FAILED';
      const what = `image ${JSON.stringify(name)} is not on this node, and it could not be pulled: ${message}`;
      throw new PolarError(reason, what, { cause: error });
    }
  }
}
