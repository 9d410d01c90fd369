// The signals that end a command which is at work.
import { constants } from 'node:os';
import process from 'node:process';
import { isatty } from 'node:tty';
import { PolarError } from '../../services/common/errors.ts';

/**
 * A hang-up is that of a terminal. Who starts a command to outlive its terminal, as by nohup, has it pass over hang-ups; but
 * Node.js undoes that when it starts, and tells nobody. What is left of nohup is that no stream is a terminal: then a hang-up
 * ends nothing (`bin/polar.js` takes it).
 */
export const STOPS: readonly NodeJS.Signals[] = [0, 1, 2].some((stream) => isatty(stream))
  ? ['SIGINT', 'SIGTERM', 'SIGHUP']
  : ['SIGINT', 'SIGTERM'];

/** Resolves at the first of them. */
export const stopped = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of STOPS) process.once(signal, () => resolve());
  });

/** What a command throws that was stopped amid work which it has to leave in order. */
export class Stopped extends PolarError {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super('CANCELLED', `ended by ${signal}`);
    this.exitCode = stopCode(signal);
  }
}

/** As a shell tells of a command that the signal ended. */
export const stopCode = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** Aborted by the first of them, with Stopped; those behind it change nothing. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of STOPS) process.on(signal, () => stop.abort(new Stopped(signal)));
  return stop.signal;
}
