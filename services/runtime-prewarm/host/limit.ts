// The time limit of a command, which can be counted anew while it runs.
import type { CommandLimit } from '../domain/command.ts';

export class Limit implements CommandLimit {
  #ms: number;
  #timer: NodeJS.Timeout | undefined;
  #over: (() => void) | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  start(over: () => void): void {
    this.#over = over;
    this.renew(this.#ms);
  }

  renew(ms: number): void {
    this.#ms = ms;
    if (this.#over === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#over, ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#over = undefined;
  }
}
