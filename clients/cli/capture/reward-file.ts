// What a command writes into a file is what it is worth. What lay there before is of another run.
import { readFileSync, statSync } from 'node:fs';
import { REWARD_MAX } from '../../../services/common/specs/external.ts';

/** Throws where it is none; `what` is where the text stands. */
export function rewardIn(text: string, what: string): number {
  const reward = text.trim() === '' ? Number.NaN : Number(text);
  if (Math.abs(reward) <= REWARD_MAX) return reward;
  const shown = JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
  throw new Error(`${what} must be a number from -${REWARD_MAX} to ${REWARD_MAX}, not ${shown}`);
}

export class RewardFile {
  readonly #file: string;
  readonly #before: string | undefined;

  /** To be made before the command begins. */
  constructor(file: string) {
    this.#file = file;
    this.#before = stateOf(file);
  }

  /** Throws where the command has written none. */
  read(): number {
    if (this.#before !== undefined && stateOf(this.#file) === this.#before) {
      throw new Error(`${this.#file} is from before the command, which did not write it`);
    }
    return rewardIn(readFileSync(this.#file, 'utf8'), this.#file);
  }
}

/** Undefined where there is none. */
function stateOf(file: string): string | undefined {
  const { ino, mtimeNs, ctimeNs, size } = statSync(file, { bigint: true, throwIfNoEntry: false }) ?? {};
  return ino === undefined ? undefined : [ino, mtimeNs, ctimeNs, size].join(' ');
}
