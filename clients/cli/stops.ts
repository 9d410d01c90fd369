// The signals that end a command which is at work.
import process from 'node:process';
import { isatty } from 'node:tty';

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
