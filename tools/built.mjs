// The mesh's programs as few files each, made of some five hundred modules by set-up (`build.mjs`): a process that neither looks
// for nor links them starts in half of the CPU (ADR 50). They are a copy that nothing depends on: where they are not there, or
// a source is not as it was, programs run from their sources.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** As other tools have it: it goes with the packages, of which the copies are made, too. */
export const BUILT = join(root, 'node_modules/.cache/polar-mesh');
export const MANIFEST = join(BUILT, 'manifest.json');
const DIGEST_CHARS = 16;
/** Those of this checkout; an image of a container may have fewer. */
export const PROGRAMS = [
  'clients/cli/main.ts',
  'examples/scripted-engine/main.ts',
  'services/evaluator/main.ts',
  'services/harness-executor/main.ts',
  'services/llm-proxy/main.ts',
  'services/reconstructor/main.ts',
  'services/reconstructor/rebuild.ts',
  'services/runtime-prewarm/main.ts',
  'services/scheduler/main.ts',
].filter((name) => existsSync(join(root, name)));

/** Whether there is nothing to make. */
export const isBuilt = () =>
  PROGRAMS.map((name) => join(root, name)).every((source) => copyOf(source) !== undefined);

/** What to run for a program, which is named by the absolute path of its source. POLAR_FROM_SOURCE=1: that. */
export function programOf(source) {
  return process.env.POLAR_FROM_SOURCE === '1' ? source : (copyOf(source) ?? source);
}

function copyOf(source) {
  const program = manifest()?.programs[relative(root, source)];
  return program !== undefined && isAsItWas(program) ? join(BUILT, program.file) : undefined;
}

let known;
function manifest() {
  try {
    known ??= JSON.parse(readFileSync(MANIFEST, 'utf8'));
  } catch {
    return undefined;
  }
  // Copied with its packages: the copies name files of the other one.
  return known.root === root ? known : undefined;
}

const isAsItWas = ({ file, sources }) => sources.every(isSame) && existsSync(join(BUILT, file));

/** Its time alone is another one where the whole was copied, as into an image of a container. */
function isSame({ name, changed, digest }) {
  return changedIn(name) === changed || digestOf(name) === digest;
}

/** When a file was changed, and its size; undefined where there is none. */
export function changedIn(name) {
  const found = statSync(join(root, name), { throwIfNoEntry: false });
  return found && `${found.mtimeMs} ${found.size}`;
}

/** Of a file's content; undefined where there is none. */
export function digestOf(name) {
  const path = join(root, name);
  return existsSync(path)
    ? createHash('sha256').update(readFileSync(path)).digest('base64url').slice(0, DIGEST_CHARS)
    : undefined;
}
