// What differs between engines in text mode: how to ask for ids, and where they are.
import type { EngineFeatures, EngineKind } from '../domain/engine-features.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Tokens } from '../domain/tokens.ts';

/** POST to the engine's path; the JSON of its answer. */
export type AskEngine = (path: string, body: JsonObject) => Promise<JsonObject>;

export interface EngineAdapter {
  readonly kind: EngineKind;
  readonly features: EngineFeatures;
  /** Fields of a chat request that make the engine return the ids that it was given and those that it sampled. */
  readonly fields: (stream: boolean) => JsonObject;
  /** Those that make it return its routed experts as well, from this id on; unset: it cannot. */
  readonly expertFields?: (from: number) => JsonObject;
  /** The request by its own names; unset: they are those of vLLM and SGLang. */
  readonly inItsWords?: (sent: JsonObject) => JsonObject;
  /** Set: such a server may refuse a request for a field that it does not know, and is asked again without. */
  readonly knowsLess?: true;
  /** Set: it looks at the entries of a reply's logprobs, not at their numbers alone. */
  readonly readsEntries?: true;
  /** Collect from a whole reply. */
  readonly readReply: (reply: JsonObject, into: Tokens) => void;
  /** Collect from one chunk of a stream. */
  readonly readChunk: (chunk: JsonObject, into: Tokens) => void;
  /** Collect what a whole reply to what was sent does not hold; takes from it what is nobody else's business. */
  readonly completeReply?: (
    reply: JsonObject,
    into: Tokens,
    ask: AskEngine,
    sent: JsonObject,
  ) => Promise<void>;
  /** What to do where it returns no ids. */
  readonly advice: string;
}

/** The ids of the prompt come before the first sampled token, those sampled with their text. */
export const tellsIdsEarly = ({ features }: EngineAdapter): boolean => features.streamedIds === 'each_chunk';
