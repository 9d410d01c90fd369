// The tiny chat model that vLLM and SGLang serve.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './command.ts';
import { made } from './folders.ts';

/** What the tests must know of it. */
export const TINY = {
  model: 'tiny random Qwen2: 2 layers of 64, vocabulary 2,048, float32',
  contextTokens: 4096,
  endId: 2,
};

const SCRIPT = join(import.meta.dirname, 'tiny-model.py');

/** Its folder. `python` has torch and transformers; `name` tells the models of different pythons apart. */
export const tinyModel = (name: string, python: string): Promise<string> =>
  made(name, [python, readFileSync(SCRIPT, 'utf8')], async (folder) => {
    await run(`${name}: random weights and a tokenizer`, [python, SCRIPT, folder], {
      env: { HF_HUB_OFFLINE: '1' },
    });
  });
