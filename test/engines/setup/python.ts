// Python environments with pinned packages, made by uv, which pip fetches first: it installs 6 GB of wheels in half a
// minute and can override a pin that cannot be resolved.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { run } from './command.ts';
import { ENGINES, made } from './folders.ts';

const UV = 'uv==0.13.8';

/** uv leaves everything below ENGINES and takes the Python that is there. */
const ENV = {
  UV_CACHE_DIR: join(ENGINES, 'uv-cache'),
  UV_PYTHON_DOWNLOADS: 'never',
  UV_NO_CONFIG_DISCOVERY: '1',
};

export interface PythonPackages {
  /** Of the environment's folder. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Taken in place of what packages ask for; one with a marker that never holds keeps a package away. */
  readonly overrides?: readonly string[];
  /** A Python script that the environment runs when the packages are there. */
  readonly afterwards?: string;
}

export const inputsOf = ({ packages, overrides = [], afterwards }: PythonPackages): readonly string[] => [
  UV,
  ...packages,
  ...overrides,
  ...(afterwards === undefined ? [] : [readFileSync(afterwards, 'utf8')]),
];

/** The environment's python. */
export async function pythonWith(wanted: PythonPackages): Promise<string> {
  const folder = await made(wanted.name, inputsOf(wanted), (at) => install(wanted, at));
  return join(folder, 'bin/python');
}

async function install(wanted: PythonPackages, folder: string): Promise<void> {
  const { packages, overrides = [], afterwards } = wanted;
  const name = basename(wanted.name);
  const uv = await uvBinary();
  await run(`${name}: environment`, [uv, 'venv', '--quiet', '--clear', folder], { env: ENV });
  const file = join(folder, 'overrides.txt');
  writeFileSync(file, overrides.map((line) => `${line}\n`).join(''));
  const python = join(folder, 'bin/python');
  const how = ['--quiet', '--compile-bytecode', '--python', python, '--override', file];
  const argv = [uv, 'pip', 'install', ...how, ...packages];
  await run(`${name}: ${packages.join(', ')}`, argv, { env: ENV });
  if (afterwards !== undefined) await run(`${name}: ${basename(afterwards)}`, [python, afterwards]);
}

async function uvBinary(): Promise<string> {
  const folder = await made('uv', [UV], async (at) => {
    await run('uv: environment', ['python3', '-m', 'venv', at]);
    await run(`uv: ${UV}`, [join(at, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', UV]);
  });
  return join(folder, 'bin/uv');
}

/** Fetch one package without what it depends on, as the file that the registry has. */
export async function download(what: string, requirement: string, folder: string): Promise<void> {
  const argv = ['python3', '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps'];
  await run(what, [...argv, '-d', folder, requirement]);
}
