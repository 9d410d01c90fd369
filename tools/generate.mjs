// Generates gen/ts and gen/python from proto/. Plain JavaScript: it also runs before the TypeScript loader is there.
//   node tools/generate.mjs            write what differs, remove what is no longer made
//   node tools/generate.mjs --check    write nothing; exit 1 with the list of files that differ
// What is made is compared with proto/ alone. Whether proto/ still fits what clients have is `npm run breaking`, against
// proto.image.binpb; a release renews that image with `npm run breaking:renew`.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const python = join(root, '.venv', 'bin', 'python');
/** Newer generators make code that older protobuf runtimes, which trainers pin, refuse to load. */
const GRPCIO_TOOLS = '1.71.2';
/** The generated Python lives below the client's package: a top-level `polar` is another project's name. */
const PYTHON_PACKAGE = 'polar_mesh.gen';

/** Files of the committed folder that are not what the protos make, as `gen/…: changed|missing|stale`. */
export function differences(made, committed) {
  const [want, have] = [listFiles(made), listFiles(committed)];
  const found = [];
  for (const file of new Set([...want, ...have])) {
    if (!have.has(file)) found.push({ file, kind: 'missing' });
    else if (!want.has(file)) found.push({ file, kind: 'stale' });
    else if (!readFileSync(join(made, file)).equals(readFileSync(join(committed, file)))) {
      found.push({ file, kind: 'changed' });
    }
  }
  return found.sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** Make both languages below `out`, as `gen/ts` and `gen/python`. */
function generateInto(out) {
  checkPython();
  buf('generate', '--template', 'buf.gen.yaml', '-o', out);
  buf('generate', '--template', 'buf.gen.python.yaml', '-o', out);
  packagePython(join(out, 'gen', 'python'), PYTHON_PACKAGE);
}

/** Bring `committed` to the state of `made`, touching only what differs. */
function apply(made, committed, found) {
  for (const { file, kind } of found) {
    const target = join(committed, file);
    if (kind === 'stale') rmSync(target);
    else {
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, readFileSync(join(made, file)));
    }
  }
}

/** protoc writes `from polar.x.v1 import …`, right only for a top-level package: put the package's name before it. */
function packagePython(folder, name) {
  const tops = readdirSync(folder).filter((entry) => statSync(join(folder, entry)).isDirectory());
  const imports = new RegExp(`^from (${tops.join('|')})(?=[. ])`, 'gm');
  const folders = new Set([folder]);
  for (const file of listFiles(folder)) {
    const path = join(folder, file);
    writeFileSync(path, readFileSync(path, 'utf8').replace(imports, `from ${name}.$1`));
    for (let up = dirname(path); up !== folder; up = dirname(up)) folders.add(up);
  }
  for (const each of folders) writeFileSync(join(each, '__init__.py'), '');
}

function listFiles(folder) {
  if (!existsSync(folder)) return new Set();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.parentPath.endsWith('__pycache__'));
  return new Set(
    files.map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/')),
  );
}

function buf(...args) {
  const path = [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter);
  execFileSync('buf', args, { cwd: root, stdio: 'inherit', env: { ...process.env, PATH: path } });
}

function checkPython() {
  const code = 'import importlib.metadata as m; print(m.version("grpcio-tools"), end="")';
  let version = 'none';
  try {
    version = execFileSync(python, ['-c', code], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {}
  if (version === GRPCIO_TOOLS) return;
  throw new Error(
    `generating Python needs grpcio-tools ${GRPCIO_TOOLS} in .venv (there: ${version}): ` +
      'python3 -m venv .venv && .venv/bin/pip install -r clients/python/requirements-test.txt',
  );
}

function main(check) {
  const scratch = mkdtempSync(join(tmpdir(), 'polar-generate-'));
  try {
    generateInto(scratch);
    const [made, committed] = [join(scratch, 'gen'), join(root, 'gen')];
    const found = differences(made, committed);
    for (const { file, kind } of found) process.stdout.write(`gen/${file}: ${kind}\n`);
    if (!check) apply(made, committed, found);
    else if (found.length > 0) {
      process.stderr.write('generated code differs from proto/: run `npm run generate` and commit gen/\n');
      process.exitCode = 1;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.includes('--check'));
  } catch (error) {
    process.stderr.write(`generate: ${error.message}\n`);
    process.exitCode = 1;
  }
}
