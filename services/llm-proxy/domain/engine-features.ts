// What each kind of engine offers, as docs/dialects.md shows it. What a kind does not offer is refused, made by the
// proxy, or recorded as absent: never guessed.

export type EngineKind = 'sglang' | 'vllm' | 'llamacpp' | 'openai';

export interface EngineFeatures {
  /** Tells sampled ids in whole replies. */
  readonly wholeIds: boolean;
  /** When a stream tells sampled ids. never: streams are made from whole replies. */
  readonly streamedIds: 'each_chunk' | 'last_chunk' | 'never';
  /**
   * Where the ids of a prompt come from in text mode. tokenized: the engine's own template and tokenizer, asked beside
   * the call; they count only if they are as many as the engine says it was given.
   */
  readonly promptIds: 'reply' | 'tokenized' | 'never';
  /** What logprobs are of: before temperature, after it, or none. */
  readonly logprobMode: 'raw' | 'processed' | '';
  /** Takes `n` above 1. */
  readonly severalChoices: boolean;
  /** Takes a `tool_choice` that names a tool. Where not, that tool alone is shown, and is required. */
  readonly toolByName: boolean;
  /** Path that tokenizes; empty: none. */
  readonly tokenizePath: string;
  /** How it takes the ids of a prompt; empty: it does not. */
  readonly tokenMode: string;
  /** Which replies tell the version of the weights; the others' is the one that was published last. */
  readonly weightVersions: 'whole' | 'token_mode' | 'never';
  /** Which replies tell the experts that it routed each id to. whole: streams are made from them where that is wanted. */
  readonly routedExperts: 'whole_and_streams' | 'whole' | 'never';
  /** Path that pauses it for a change of weights; empty: none. */
  readonly pausePath: string;
}

export const ENGINE_FEATURES: Readonly<Record<EngineKind, EngineFeatures>> = {
  sglang: {
    wholeIds: true,
    streamedIds: 'last_chunk',
    promptIds: 'reply',
    // Raw where the server runs with SGLANG_RETURN_ORIGINAL_LOGPROB; the two are equal at temperature 1.
    logprobMode: 'processed',
    severalChoices: true,
    toolByName: true,
    tokenizePath: '/tokenize',
    tokenMode: '/v1/chat/completions with input_ids',
    weightVersions: 'whole',
    routedExperts: 'whole_and_streams',
    pausePath: '/pause_generation',
  },
  vllm: {
    wholeIds: true,
    streamedIds: 'each_chunk',
    promptIds: 'reply',
    logprobMode: 'raw',
    severalChoices: true,
    toolByName: true,
    tokenizePath: '/tokenize',
    tokenMode: '/inference/v1/generate',
    weightVersions: 'token_mode',
    routedExperts: 'whole',
    pausePath: '/pause',
  },
  llamacpp: {
    wholeIds: true,
    // Its chunks leave out ids of characters that take several, and the end token.
    streamedIds: 'never',
    promptIds: 'tokenized',
    logprobMode: 'raw',
    // Exact ids come for the first choice alone.
    severalChoices: false,
    // It takes any object for `auto`.
    toolByName: false,
    tokenizePath: '/tokenize',
    tokenMode: '/completion',
    weightVersions: 'never',
    routedExperts: 'never',
    pausePath: '',
  },
  openai: {
    wholeIds: false,
    streamedIds: 'never',
    promptIds: 'never',
    logprobMode: '',
    severalChoices: true,
    toolByName: true,
    tokenizePath: '',
    tokenMode: '',
    weightVersions: 'never',
    routedExperts: 'never',
    pausePath: '',
  },
};
