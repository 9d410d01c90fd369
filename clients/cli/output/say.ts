// The two streams of a command: results on standard output, everything about them on standard error.
import process from 'node:process';

export const say = (text: string): void => void process.stdout.write(`${text}\n`);
export const sayJson = (value: unknown): void => say(JSON.stringify(value));
export const complain = (text: string): void => void process.stderr.write(`polar: ${text}\n`);
export const progress = (text: string): void => void process.stderr.write(`${text}\n`);
