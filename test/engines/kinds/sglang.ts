// SGLang without a GPU. Its kernels want one symbol of the GPU's driver when they are loaded, which a stub gives.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { arrayOf, type JsonObject, objectOf } from '../../../services/llm-proxy/domain/json.ts';
import { run } from '../setup/command.ts';
import { isMade, made } from '../setup/folders.ts';
import { inputsOf, pythonWith } from '../setup/python.ts';
import { TINY, tinyModel } from '../setup/tiny-model.ts';
import { ask, type RealEngine, type Sampling } from './engine.ts';

const PACKAGES = { name: 'sglang', packages: ['sglang==0.5.23'] };
const VOCABULARY = 2048;

/** Nothing calls it on a CPU. */
const STUB = 'int cuPointerGetAttribute(void) { return 100; }\n';

const modelFolder = (): Promise<string> => tinyModel(PACKAGES);

const driverStub = (): Promise<string> =>
  made('cuda-stub', [STUB], async (folder) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'stub.c'), STUB);
    const flags = ['-shared', '-fPIC', '-Wl,-soname,libcuda.so.1', '-o', 'libcuda.so.1'];
    await run('sglang: stub of libcuda.so.1', ['gcc', 'stub.c', ...flags], { cwd: folder });
  });

export const sglang: RealEngine = {
  ...TINY,
  kind: 'sglang',
  title: 'SGLang 0.5.23',
  source: PACKAGES.packages.join(),
  diskGb: 10,
  minutes: 2,
  // Seeds count only in its deterministic mode, which needs a GPU.
  seeded: false,
  idsWithText: false,
  logprobMode: 'processed',
  tolerance: 1e-4,
  lookMs: 10,
  isPrepared: () => isMade(PACKAGES.name, inputsOf(PACKAGES)),
  tokenizer: modelFolder,
  async prepare() {
    await driverStub();
    await modelFolder();
  },
  async command(port) {
    const python = await pythonWith(PACKAGES);
    const model = ['--model-path', await modelFolder(), '--served-model-name', 'tiny', '--dtype', 'float32'];
    const cpu = ['--device', 'cpu', '--attention-backend', 'torch_native', '--sampling-backend', 'pytorch'];
    const plain = ['--disable-cuda-graph', '--disable-overlap-schedule', '--mem-fraction-static', '0.3'];
    const limits = ['--context-length', String(TINY.contextTokens), '--max-total-tokens', '16384'];
    // Without a parser a stream leaves out the logprobs of tokens without text, the end token's first of all.
    const parser = ['--tool-call-parser', 'qwen25'];
    const at = ['--host', '127.0.0.1', '--port', String(port)];
    return {
      argv: [python, '-m', 'sglang.launch_server', ...model, ...cpu, ...plain, ...limits, ...parser, ...at],
      env: { LD_LIBRARY_PATH: await driverStub(), HF_HUB_OFFLINE: '1', SGLANG_USE_CPU_ENGINE: '1' },
    };
  },
  async promptIds(url, messages) {
    const body = { model: 'tiny', messages: [...messages] } as unknown;
    return (await ask(`${url}/v1/tokenize`, body as JsonObject))['tokens'] as number[];
  },
  async tokenize(url, text) {
    const body = { model: 'tiny', prompt: text, add_special_tokens: false };
    return (await ask(`${url}/tokenize`, body))['tokens'] as number[];
  },
  async generate(url, prompt, { temperature, maxTokens }) {
    const sampling = { temperature, max_new_tokens: maxTokens };
    const body = { input_ids: [...prompt], sampling_params: sampling, return_logprob: true };
    const reply = await ask(`${url}/generate`, body);
    const pairs = objectOf(reply['meta_info'])['output_token_logprobs'] as [number, number][];
    return { ids: reply['output_ids'] as number[], logprobs: pairs.map(([logprob]) => logprob) };
  },
  async rescore(url, ids, from, sampling) {
    const reply = await ask(`${url}/generate`, {
      input_ids: [...ids],
      sampling_params: { temperature: 0, max_new_tokens: 1 },
      return_logprob: true,
      logprob_start_len: 0,
      top_logprobs_num: VOCABULARY,
    });
    const places = arrayOf(objectOf(reply['meta_info'])['input_top_logprobs']).slice(from);
    return places.map((place, i) =>
      processed(place as [number, number][], ids[from + i] as number, sampling),
    );
  },
  async running(url) {
    const loads = arrayOf((await ask(`${url}/v1/loads`))['loads']).map(objectOf);
    return loads.reduce((sum, { num_running_reqs }) => sum + Number(num_running_reqs), 0);
  },
};

/** The logprob of an id once bias and temperature have been applied to the whole vocabulary. Greedy counts as 1. */
function processed(
  all: readonly [number, number][],
  wanted: number,
  { temperature, bias = {} }: Sampling,
): number {
  const divisor = temperature === 0 ? 1 : temperature;
  const logits = new Map(all.map(([logprob, id]) => [id, (logprob + (bias[id] ?? 0)) / divisor]));
  const norm = Math.log([...logits.values()].reduce((sum, logit) => sum + Math.exp(logit), 0));
  return (logits.get(wanted) ?? Number.NaN) - norm;
}
