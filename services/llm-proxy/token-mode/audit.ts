// Renders a share of the prompts of token mode from scratch, beside the calls: no call waits for it.
import { withTimeout } from '../../common/clock.ts';
import { AUDITS_WAITING_MAX, RENDER_MS } from '../../common/limits.ts';
import { type AuditCounts, type Mismatch, mismatchOf, type Sent } from '../domain/audit.ts';
import type { Render, Rendering } from './renderer.ts';

export interface AuditJob {
  readonly render: Render;
  readonly rendering: Rendering;
  readonly sent: Sent;
}

export class Audit {
  readonly #signal: AbortSignal;
  readonly #waiting: AuditJob[] = [];
  readonly #mismatches: Record<Mismatch, number> = { sampled: 0, rendered: 0 };
  #running: Promise<void> | undefined;
  #checked = 0;
  #matches = 0;
  #missed = 0;

  /** The signal ends it. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get counts(): AuditCounts {
    const mismatches = { ...this.#mismatches };
    return { checked: this.#checked, matches: this.#matches, mismatches, missed: this.#missed };
  }

  add(job: AuditJob): void {
    if (this.#waiting.length >= AUDITS_WAITING_MAX) {
      this.#missed++;
      return;
    }
    this.#waiting.push(job);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift())
      await this.#check(job);
    this.#running = undefined;
  }

  async #check({ render, rendering, sent }: AuditJob): Promise<void> {
    try {
      const rendered = await render(rendering, withTimeout(RENDER_MS, this.#signal));
      const mismatch = mismatchOf(rendered, sent);
      this.#checked++;
      if (mismatch === undefined) this.#matches++;
      else this.#mismatches[mismatch]++;
    } catch {
      this.#missed++;
    }
  }
}
