// Makes the trainers' environment: `node tools/setup.mjs trainers` runs this.
import process from 'node:process';
import { trainersPython } from './environment.ts';

try {
  await trainersPython();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
