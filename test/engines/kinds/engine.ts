// What the tests need of a real engine: how to get and start it, and its own word for what it is given and samples, by
// other endpoints than those that the proxy calls.
import type { JsonObject } from '../../../services/llm-proxy/domain/json.ts';

export interface Message {
  readonly role: string;
  readonly content: string;
}

export interface Sampling {
  readonly temperature: number;
  readonly maxTokens: number;
  readonly seed?: number;
  /** Added to the logits of ids. */
  readonly bias?: Readonly<Record<number, number>>;
}

export interface Sampled {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
}

export interface Command {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface RealEngine {
  readonly kind: 'vllm' | 'sglang' | 'llamacpp';
  readonly title: string;
  /** The packages that it comes in. */
  readonly source: string;
  readonly model: string;
  readonly diskGb: number;
  /** To set it up, on two cores. */
  readonly minutes: number;
  readonly contextTokens: number;
  /** What it calls the end of a turn. */
  readonly endId: number;
  /** Samples the same again for the same seed. */
  readonly seeded: boolean;
  /** Tells ids with the text that they belong to, so that what a harness did not wait for is recorded, too. */
  readonly idsWithText: boolean;
  readonly logprobMode: 'raw' | 'processed';
  /** Most that a logprob may differ when the same ids are scored again, in one run instead of token by token. */
  readonly tolerance: number;
  /** Between two looks at what it is working on. */
  readonly lookMs: number;
  /** What takes long and much room is there. */
  isPrepared(): boolean;
  prepare(): Promise<void>;
  /** Folder of the model's tokenizer and chat template, where the proxy is to render itself. */
  readonly tokenizer?: () => Promise<string>;
  command(port: number): Promise<Command>;
  /** What makes it take calls and thinking out of replies; unset: what a harness gets does not depend on that. */
  readonly parsers?: readonly string[];
  promptIds(url: string, messages: readonly Message[]): Promise<readonly number[]>;
  tokenize(url: string, text: string): Promise<readonly number[]>;
  generate(url: string, prompt: readonly number[], sampling: Sampling): Promise<Sampled>;
  /** Logprobs of the ids from place `from` on, as the engine gives them when it samples in this way. */
  rescore(url: string, ids: readonly number[], from: number, sampling: Sampling): Promise<readonly number[]>;
  /** Requests that it is working on. */
  running(url: string): Promise<number>;
}

/** GET, or POST where there is a body; the JSON that is answered. Throws what an error says. */
export async function ask(url: string, body?: JsonObject): Promise<JsonObject> {
  const answer = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as JsonObject;
}
