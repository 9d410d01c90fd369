// Makes the files of `built.mjs`, unless they are there and as their sources are:
//   node tools/build.mjs
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { BUILT, changedIn, digestOf, isBuilt, MANIFEST, PROGRAMS } from './built.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Of all packages: npm writes it anew with any of them. */
const PACKAGES = 'node_modules/.package-lock.json';
/** The one that was made and the one before it, of which processes may still read. */
const KEPT = 2;
async function make() {
  mkdirSync(BUILT, { recursive: true });
  const made = mkdtempSync(join(BUILT, 'built-'));
  // Services may run as another user than set-up.
  chmodSync(made, 0o755);
  const startedMs = Date.now();
  try {
    const { metafile } = await bundled(made);
    const programs = programsIn(metafile, startedMs);
    writeFileSync(join(made, 'manifest.json'), JSON.stringify({ root, programs }));
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    throw error;
  }
  // Who reads it meanwhile finds one that is whole.
  renameSync(join(made, 'manifest.json'), MANIFEST);
  removeOld();
}

/** Each into one file, beside files of what several of them have. */
async function bundled(into) {
  return await build({
    entryPoints: PROGRAMS,
    absWorkingDir: root,
    outdir: into,
    outbase: root,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    // Nothing is made older: Node.js takes the sources as they are.
    target: 'esnext',
    metafile: true,
    // For `NODE_OPTIONS=--enable-source-maps`: lines of stacks are then those of the sources.
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'error',
    // Packages of CommonJS ask for Node's own modules by it.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    plugins: [{ name: 'places', setup: ({ onLoad }) => onLoad({ filter: OWN }, placed) }],
  });
}

const OWN = /\.(ts|mjs)$/;

/** Files beside a source are still found there. */
function placed({ path }) {
  if (path.startsWith(join(root, 'node_modules'))) return undefined;
  const text = readFileSync(path, 'utf8');
  if (!text.includes('import.meta.')) return undefined;
  const contents = text
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
  return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
}

/** Of each program: its file, and how each of its sources is. */
function programsIn({ outputs }, startedMs) {
  const sourcesOf = (output, seen) => {
    if (seen.has(output)) return [];
    seen.add(output);
    const { inputs, imports } = outputs[output];
    const others = imports.filter(({ external }) => !external).map(({ path }) => path);
    return [...Object.keys(inputs), ...others.flatMap((other) => sourcesOf(other, seen))];
  };
  return Object.fromEntries(
    Object.entries(outputs)
      .filter(([, { entryPoint }]) => PROGRAMS.includes(entryPoint))
      .map(([output, { entryPoint }]) => {
        const own = sourcesOf(output, new Set()).filter((name) => !name.startsWith('node_modules/'));
        const sources = [...new Set([...own, PACKAGES])].map((name) => sourceAt(name, startedMs));
        return [entryPoint, { file: relative(BUILT, join(root, output)), sources }];
      }),
  );
}

/** Of one that was changed meanwhile nobody knows which content was read: it is never as it was. */
function sourceAt(name, startedMs) {
  const isKnown = statSync(join(root, name)).mtimeMs < startedMs;
  return isKnown
    ? { name, changed: changedIn(name), digest: digestOf(name) }
    : { name, changed: '', digest: '' };
}

function removeOld() {
  const all = readdirSync(BUILT)
    .filter((name) => name.startsWith('built-'))
    .map((name) => ({ path: join(BUILT, name), madeMs: statSync(join(BUILT, name)).mtimeMs }))
    .sort((one, other) => other.madeMs - one.madeMs);
  for (const { path } of all.slice(KEPT)) rmSync(path, { recursive: true, force: true });
}

if (!isBuilt()) await make();
