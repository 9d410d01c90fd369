// The two streams of a command: results on standard output, everything about them on standard error.
import process from 'node:process';

/** Failures repeat what commands in sandboxes wrote: none of that steers the terminal. */
const printable = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]/gu, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const say = (text: string): void => void process.stdout.write(`${printable(text)}\n`);
export const sayJson = (value: unknown): void => say(JSON.stringify(value));
export const complain = (text: string): void => void process.stderr.write(`polar: ${printable(text)}\n`);
export const progress = (text: string): void => void process.stderr.write(`${printable(text)}\n`);

const PACE_MS = 1_000;

/** How far a command is, once a second: of ten thousand sessions each would have a line. */
export function pacedProgress(): (text: string) => void {
  let nextMs = performance.now() + PACE_MS;
  return (text) => {
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + PACE_MS;
    progress(text);
  };
}
