// The embedded scripted engine: a real tokenizer and chat template, replies from a script, no GPU.
import { join } from 'node:path';
import { programOf } from '../../../tools/built.mjs';
import { inherited } from '../config.ts';
import { ROOT } from '../services.ts';
import { type Child, startChild } from './child.ts';
import type { Embedded } from './topology.ts';

/** Played behind those that the user gives. */
const SCRIPTS = ['calculator', 'swebench'].map((name) => join(ROOT, `examples/${name}/script.yaml`));

export interface EngineOptions extends Embedded {
  readonly scripts: readonly string[];
  readonly logFile: string;
  readonly compileCache: string;
}

export function startEngine({ dialect, port, scripts, logFile, compileCache }: EngineOptions): Child {
  const main = programOf(join(ROOT, 'examples/scripted-engine/main.ts'));
  const flags = ['--port', String(port), '--lifeline', '--dialect', dialect];
  return startChild({
    command: process.execPath,
    args: [main, ...flags, ...[...scripts, ...SCRIPTS].flatMap((script) => ['--script', script])],
    env: { PATH: inherited['PATH'], NODE_COMPILE_CACHE: compileCache },
    output: { file: logFile },
  });
}
