// The readers in other languages: built as their READMEs say, where the language is there.
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
/** What is built stays, so that the next build is one of seconds. */
const CACHE = join(ROOT, '.cache/readers');
const env = {
  ...process.env,
  PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env.PATH}`,
  CARGO_TARGET_DIR: join(CACHE, 'rust'),
};
const run = promisify(execFile);
const RUN_MS = 60_000;

export interface ReaderProgram {
  readonly language: string;
  /** Of the language's tools; without it there is nothing to build with. */
  readonly tool: string;
  /** The files that a trainer's author would write. */
  readonly source: string;
  /** Answers with the program. */
  build(): Promise<string>;
}

export const READERS: readonly ReaderProgram[] = [
  {
    language: 'Go',
    tool: 'go',
    source: 'clients/go/main.go',
    async build() {
      const cwd = join(ROOT, 'clients/go');
      mkdirSync(CACHE, { recursive: true });
      await run('go', ['generate'], { cwd, env });
      await run('go', ['vet', '.'], { cwd, env });
      await run('go', ['build', '-o', join(CACHE, 'go-reader'), '.'], { cwd, env });
      return join(CACHE, 'go-reader');
    },
  },
  {
    language: 'Rust',
    tool: 'cargo',
    source: 'clients/rust/src/main.rs',
    async build() {
      const cwd = join(ROOT, 'clients/rust');
      await run('cargo', ['build', '--release', '--quiet'], { cwd, env });
      return join(CACHE, 'rust/release/reader');
    },
  },
];

export const isInstalled = (tool: string): boolean =>
  spawnSync(tool, ['version'], { env }).error === undefined;

/** What the reader prints; throws where it does not end well. */
export async function readWith(
  program: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const { stdout } = await run(program, args, { env: { ...env, ...more }, timeout: RUN_MS });
  return stdout.trimEnd().split('\n');
}
