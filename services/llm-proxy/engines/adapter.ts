// What differs between engines in text mode: how to ask for ids, and where they are.
import type { JsonObject } from '../domain/json.ts';
import type { Tokens } from '../domain/tokens.ts';

export interface EngineAdapter {
  readonly kind: 'sglang' | 'vllm';
  /** Fields of a chat request that make the engine return the ids that it was given and those that it sampled. */
  readonly fields: (stream: boolean) => JsonObject;
  /** Collect from a whole reply. */
  readonly readReply: (reply: JsonObject, into: Tokens) => void;
  /** Collect from one chunk of a stream. */
  readonly readChunk: (chunk: JsonObject, into: Tokens) => void;
  /** The ids of the prompt come before the first sampled token, those sampled with their text. */
  readonly idsInEachChunk: boolean;
  /** What to do where it returns no ids. */
  readonly advice: string;
}
