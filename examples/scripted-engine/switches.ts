// What can be made to go wrong, or slowly, or otherwise: flags of the server, keys of a script, a header of a request.
import { z } from 'zod';
import { RequestFault } from './faults.ts';

const count = z.int().min(0);

const switchesSchema = z.strictObject({
  /** Wait before each token. */
  token_ms: count,
  /** Wait before the first token, on top. */
  first_token_ms: count,
  /** Tokens in one chunk of a stream. */
  tokens_per_chunk: z.int().min(1),
  /** Every n-th call fails; 0: none. */
  error_every: count,
  /** 400 is a context overflow, 429 has `retry-after: 1`. */
  error_status: z.union([z.literal(400), z.literal(429), z.literal(500), z.literal(503)]),
  /** The socket is destroyed after so many tokens; 0: never. */
  cut_after_tokens: count,
  /** Of the calls that could be cut, every n-th is. */
  cut_every: z.int().min(1),
  /** A cut stream ends as if it were whole, without its last events. */
  cut_clean: z.boolean(),
  /** A cut stream ends with an error event, as engines end one that they cannot go on with. */
  cut_error: z.boolean(),
  /** The socket is destroyed before the head of an answer. */
  cut_before_head: z.boolean(),
  /** A silence of this length, once in a call. */
  stall_ms: count,
  /** Where it comes; 0: before the head of the answer. */
  stall_after_tokens: count,
  /** Errors, cuts and stalls hit only the first n tries of the same request; 0: all. */
  fault_tries: count,
  /** Token ids in replies. */
  token_ids: z.boolean(),
  /** Logprobs in replies. */
  logprobs: z.boolean(),
  /** Earlier assistant turns come with another split of the same text than was sampled. */
  retokenise_history: z.boolean(),
  /** Replies are sampled with another split of the text than encoding it gives. */
  split_samples: z.boolean(),
  /** Thinking of earlier turns: as the chat template does, in none, or in all. */
  thinking_history: z.enum(['template', 'stripped', 'kept']),
  /** How a tool call is written in the reply's text. */
  tool_format: z.enum(['hermes', 'xml']),
  /** The newline before a tool call stays in `content`, so that the next prompt has two. */
  keep_content_newline: z.boolean(),
  /** The chat template refuses a system message behind the first message. */
  system_first: z.boolean(),
  /** Context window; a longer request is a 400. */
  context_tokens: z.int().min(1),
  /** Tokens that usage says the prompt has; 0: as many as it has. */
  prompt_tokens_told: count,
  /** Layers of a mixture-of-experts model; 0: it is none. */
  expert_layers: count,
  /** Experts of a layer that a token is routed to, and that there are. */
  expert_top_k: z.int().min(1),
  experts: z.int().min(1),
});
export type Switches = z.output<typeof switchesSchema>;

export const someSwitchesSchema = switchesSchema.partial();
export type SomeSwitches = z.output<typeof someSwitchesSchema>;

export const DEFAULT_SWITCHES: Switches = {
  token_ms: 0,
  first_token_ms: 0,
  tokens_per_chunk: 1,
  error_every: 0,
  error_status: 500,
  cut_after_tokens: 0,
  cut_every: 1,
  cut_clean: false,
  cut_error: false,
  cut_before_head: false,
  stall_ms: 0,
  stall_after_tokens: 0,
  fault_tries: 0,
  token_ids: true,
  logprobs: true,
  retokenise_history: false,
  split_samples: false,
  thinking_history: 'template',
  tool_format: 'hermes',
  keep_content_newline: false,
  system_first: false,
  context_tokens: 262_144,
  prompt_tokens_told: 0,
  expert_layers: 0,
  expert_top_k: 2,
  experts: 8,
};
export const SWITCH_NAMES = Object.keys(DEFAULT_SWITCHES) as (keyof Switches)[];

export const SWITCHES_HEADER = 'x-scripted-engine';

/** `token_ms=5, cut_clean=true`; a fault that names the switch otherwise. */
export function parseSwitches(text: string): SomeSwitches {
  const pairs = text.split(',').map((pair) => pair.split('=').map((part) => part.trim()));
  const parsed = someSwitchesSchema.safeParse(
    Object.fromEntries(pairs.map(([name = '', value = '']) => [name, scalar(value)])),
  );
  if (parsed.success) return parsed.data;
  throw new RequestFault(400, `${SWITCHES_HEADER}: ${z.prettifyError(parsed.error)}`);
}

/** What is set in a later one wins. */
export function mergeSwitches(base: Switches, ...more: readonly (SomeSwitches | undefined)[]): Switches {
  const merged: Record<string, unknown> = { ...base };
  for (const some of more) {
    for (const [name, value] of Object.entries(some ?? {})) if (value !== undefined) merged[name] = value;
  }
  return merged as Switches;
}

/** A flag's or header's value as YAML would read it. */
export function scalar(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}
