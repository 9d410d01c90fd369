// Logprobs of given ids at an engine: what it says of them when it reads them instead of sampling them.
import { postToEngine } from './engine-request.ts';

/** Kinds of engines that can. */
export const SCORING_KINDS = ['vllm', 'sglang', 'llamacpp'] as const;
export type ScoringKind = (typeof SCORING_KINDS)[number];

/** Of the ids at `places`, each behind all ids before it; NaN where the engine tells none. */
export type Score = (model: string, ids: Int32Array, places: readonly number[]) => Promise<number[]>;

export interface Engine {
  readonly url: string;
  readonly kind: ScoringKind;
  /** Of the authorization header. */
  readonly key?: string | undefined;
}

/** A long trace on a busy CPU. */
const SCORE_MS = 10 * 60_000;
/** llama.cpp: above any logit, so that the wanted id comes, and its logprob is told as it was without that. */
const FORCE = 1_000;

type Ask = (path: string, body: object) => Promise<unknown>;

/** Throws ENGINE_UNAVAILABLE, ENGINE_ERROR. */
export function scoringAt({ url, kind, key }: Engine): Score {
  const root = url.replace(/\/v1$/, '');
  const ask: Ask = (path, body) => postToEngine({ url: root + path, key, body, timeoutMs: SCORE_MS });
  return (model, ids, places) => WAYS[kind](ask, model, ids, places);
}

type Way = (ask: Ask, model: string, ids: Int32Array, places: readonly number[]) => Promise<number[]>;

const WAYS: Record<ScoringKind, Way> = {
  async vllm(ask, model, ids, places) {
    const body = { model, prompt: [...ids], max_tokens: 1, temperature: 0, prompt_logprobs: 0 };
    const reply = (await ask('/v1/completions', body)) as {
      choices?: { prompt_logprobs?: (Record<string, { logprob: number }> | null)[] }[];
    } | null;
    const told = reply?.choices?.[0]?.prompt_logprobs;
    return places.map((place) => told?.[place]?.[String(ids[place])]?.logprob ?? Number.NaN);
  },

  async sglang(ask, _model, ids, places) {
    const reply = (await ask('/generate', {
      input_ids: [...ids],
      // At temperature 0 it tells those of the model, whatever it does to those that it samples from.
      sampling_params: { temperature: 0, max_new_tokens: 1 },
      return_logprob: true,
      logprob_start_len: 0,
    })) as { meta_info?: { input_token_logprobs?: [number | null, number][] } } | null;
    const told = reply?.meta_info?.input_token_logprobs;
    return places.map(
      (place) => (told?.[place]?.[1] === ids[place] ? told?.[place]?.[0] : null) ?? Number.NaN,
    );
  },

  /** It scores no prompts: each id is forced in turn behind those before it, which it has in its cache. */
  async llamacpp(ask, _model, ids, places) {
    const scored: number[] = [];
    for (const place of places) {
      const reply = (await ask('/completion', {
        prompt: [...ids.subarray(0, place)],
        n_predict: 1,
        n_probs: 1,
        temperature: 0,
        cache_prompt: true,
        logit_bias: [[ids[place], FORCE]],
      })) as { completion_probabilities?: { id: number; logprob: number }[] } | null;
      const told = reply?.completion_probabilities?.find(({ id }) => id === ids[place]);
      scored.push(told?.logprob ?? Number.NaN);
    }
    return scored;
  },
};
