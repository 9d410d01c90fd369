// The tiny chat model that vLLM and SGLang serve.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './command.ts';
import { made } from './folders.ts';
import { inputsOf, type PythonPackages, pythonWith } from './python.ts';

/** What the tests must know of it. */
export const TINY = {
  model: 'tiny random Qwen2: 2 layers of 64, vocabulary 2,048, float32',
  contextTokens: 4096,
  endId: 2,
};

const SCRIPT = join(import.meta.dirname, 'tiny-model.py');

/** Its folder. It is made with the torch and transformers of an engine's environment, for that engine. */
export async function tinyModel(packages: PythonPackages): Promise<string> {
  const python = await pythonWith(packages);
  const name = `tiny-model-${packages.name}`;
  return await made(name, [...inputsOf(packages), readFileSync(SCRIPT, 'utf8')], async (folder) => {
    const env = { HF_HUB_OFFLINE: '1' };
    await run(`${name}: random weights and a tokenizer`, [python, SCRIPT, folder], { env });
  });
}
