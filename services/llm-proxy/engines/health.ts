// Whether an engine answers, as its calls and probes tell.
import { ENGINE_FAILURES_MAX } from '../../common/limits.ts';

export class Health {
  #failures = 0;

  /** False after ENGINE_FAILURES_MAX failures, one after another. */
  get up(): boolean {
    return this.#failures < ENGINE_FAILURES_MAX;
  }

  answered(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures++;
  }
}
