// Installs every CLI of the conformance run ahead of it.
import process from 'node:process';
import { CLIS } from './clis/index.ts';
import { installAll } from './trials.ts';

const say = (text: string): boolean => process.stderr.write(`${text}\n`);
const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`;

try {
  await installAll(CLIS, {
    started: (name, version) => say(`installing ${name} ${version}`),
    progress: (name, ms) => say(`installing ${name}: ${seconds(ms)}`),
    done: (name, ms) => say(`installed ${name} in ${seconds(ms)}`),
  });
} catch (error) {
  say((error as Error).message);
  process.exitCode = 1;
}
