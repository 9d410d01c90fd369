// npm run test:engines [-- vllm sglang llamacpp]: sets real engines up on this machine's CPU, runs the llm-proxy in front
// of each of them, and writes what came out to docs/engines.md.
import { mkdirSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import Mocha from 'mocha';
import { chosen } from './chosen.ts';
import { figuresOf } from './figures.ts';
import type { RealEngine } from './kinds/engine.ts';
import { ENGINES } from './kinds/engines.ts';
import { writeReport } from './report.ts';
import { say } from './setup/command.ts';
import { ENGINES as FOLDER } from './setup/folders.ts';

const TEST_MS = 60_000;

function asked(): readonly RealEngine[] {
  const names = process.argv.slice(2);
  const unknown = names.filter((name) => !ENGINES.some(({ kind }) => kind === name));
  if (unknown.length > 0) throw new Error(`no engine ${unknown.join()}: vllm, sglang, llamacpp`);
  return names.length === 0 ? ENGINES : ENGINES.filter(({ kind }) => names.includes(kind));
}

function freeGb(): number {
  mkdirSync(FOLDER, { recursive: true });
  const { bavail, bsize } = statfsSync(FOLDER);
  return (bavail * bsize) / 1e9;
}

/** Said before anything is fetched. */
function announce(engines: readonly RealEngine[]): void {
  for (const { title, source, diskGb, minutes } of engines.filter((engine) => !engine.isPrepared())) {
    say(`${title} is to be set up: ${source}; ${diskGb} GB, about ${minutes} minutes on two cores`);
  }
  say(`all of it lies in ${FOLDER}, with ${freeGb().toFixed(0)} GB free; remove that folder to be rid of it`);
}

/** An engine that cannot be had here is left out with its reason, which the end of the run says again. */
async function prepare(engine: RealEngine): Promise<void> {
  try {
    if (!engine.isPrepared() && freeGb() < engine.diskGb) {
      throw new Error(`${engine.diskGb} GB are needed, ${freeGb().toFixed(0)} GB are free`);
    }
    await engine.prepare();
    chosen.push(engine);
  } catch (error) {
    figuresOf(engine.title).problem = (error as Error).message;
    say(`${engine.title} cannot be set up here: ${(error as Error).message}`);
  }
}

async function test(): Promise<number> {
  const mocha = new Mocha({ timeout: TEST_MS });
  mocha.addFile(join(import.meta.dirname, 'engines.spec.ts'));
  await mocha.loadFilesAsync();
  return await new Promise((resolve) => void mocha.run(resolve));
}

// What 'exit' is waiting for is done on the way out.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const engines = asked();
announce(engines);
for (const engine of engines) await prepare(engine);
const failures = await test();
const problems = engines.map(({ title }) => ({ title, problem: figuresOf(title).problem }));
for (const { title, problem } of problems) {
  if (problem !== undefined) say(`${title} did not run: ${problem.split('\n')[0]}`);
}
writeReport(engines);
say('docs/engines.md has the figures of this run');
process.exitCode = failures > 0 || problems.some(({ problem }) => problem !== undefined) ? 1 : 0;
