// Exports take turns: each holds what its session has recorded, or its traces, until its last line, and of callers there
// may be many.
import { Semaphore } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';

/** Exports at once; more wait. */
export const EXPORTS_AT_ONCE_MAX = 4;
/** Those that wait; above: EXPORTS_LIMIT. */
export const EXPORTS_WAITING_MAX = 64;
/** What a reader may take for one line; then another export has its place, and it is told EXPORTS_LIMIT when it reads on. */
const EXPORT_LINE_MS = 60_000;

export class Exports {
  readonly #places = new Semaphore(EXPORTS_AT_ONCE_MAX);
  readonly #lineMs: number;
  #asked = 0;

  constructor(lineMs = EXPORT_LINE_MS) {
    this.#lineMs = lineMs;
  }

  /** The lines, when it is their turn. Throws EXPORTS_LIMIT. */
  async *run(open: () => Promise<Iterator<string>>, signal: AbortSignal): AsyncGenerator<string, void> {
    using place = await this.#enter(signal);
    let lines: Iterator<string> | undefined = await open();
    const end = (): void => {
      lines = undefined;
      place[Symbol.dispose]();
    };
    while (lines !== undefined) {
      const next: IteratorResult<string> = lines.next();
      if (next.done === true) return;
      const late = setTimeout(end, this.#lineMs);
      try {
        yield next.value;
      } finally {
        clearTimeout(late);
      }
    }
    throw new PolarError('EXPORTS_LIMIT', `no line was taken for ${this.#lineMs} ms: export it again`);
  }

  /** Who leaves before its turn is counted no more. */
  async #enter(signal: AbortSignal): Promise<Disposable> {
    if (this.#asked >= EXPORTS_AT_ONCE_MAX + EXPORTS_WAITING_MAX) {
      throw new PolarError('EXPORTS_LIMIT', `${this.#asked} exports are written, or wait to be; ask again`);
    }
    this.#asked++;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#asked--;
      this.#places.release();
    };
    try {
      await this.#places.acquire(signal);
      return { [Symbol.dispose]: over };
    } catch (error) {
      this.#asked--;
      throw error;
    }
  }
}
