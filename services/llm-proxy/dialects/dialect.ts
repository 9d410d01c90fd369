// What differs between the provider APIs that harnesses speak. A dialect is pure: it reads a request into the words of
// openai-chat, which every engine takes, and writes what an engine answers in them as the harness expects it.
import type { PolarError } from '../../common/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Notes } from '../domain/notes.ts';
import type { DialectName, GenerateTarget } from '../domain/paths.ts';
import type { Found, Refers } from '../domain/stored-replies.ts';
import type { Allowed } from './faults.ts';
import type { Feature } from './features.ts';

/** A checked request in the words of openai-chat. */
export interface Asked {
  readonly dialect: DialectName;
  /** The conversation as it is recorded, matched and sent: openai-chat messages, oldest first, at least one. */
  readonly messages: readonly JsonObject[];
  /** Tool definitions `{type: 'function', function: {name, description, parameters}}`, as shown to the model. */
  readonly tools: readonly JsonObject[];
  /** All other members of the engine's request: sampling, `tool_choice`, `response_format`, … */
  readonly fields: JsonObject;
  /** Unset: the harness named none. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** Replies wanted for one prompt, at least 1. */
  readonly n: number;
  /** The harness is shown the logprobs; unset: it is not. */
  readonly showsLogprobs?: boolean;
  /** Place of the first message from which later calls may go on by naming the reply; unset: it is not to be found. */
  readonly storedFrom?: number;
  /** Writes replies in the form of this request; `shown` is the model name that the harness sees, the call names the reply. */
  readonly writer: (shown: string, callId?: string) => ReplyWriter;
}

/** Writes one reply. */
export interface ReplyWriter {
  /** The body for a whole `chat.completion` of the engine. May change the object that it is given. */
  whole(reply: JsonObject): JsonObject;
  /** Begin a streamed reply. */
  stream(): StreamWriter;
}

/** Writes one streamed reply. All strings are framed, ready for the connection. */
export interface StreamWriter {
  readonly contentType: string;
  /** Fills long silences; empty where the form allows nothing. May come before the first chunk. */
  keepAlive(): string;
  /** What goes out for a `chat.completion.chunk` of the engine, '' for nothing yet. May change the object. */
  chunk(chunk: JsonObject): string;
  /** What ends the stream, when all is recorded. */
  end(): string;
  /** The event that ends a broken stream; undefined: the connection is cut, which clients of the dialect take better. */
  failed(error: PolarError): string | undefined;
}

/** What is known of a body besides what it says. */
export interface KnownOfBody {
  /** What it names; unset: nothing. */
  readonly found?: Found<JsonObject> | undefined;
  /** Unset: nothing was made of its conversation before. */
  readonly notes?: Notes | undefined;
}

/** One of the provider APIs. */
export interface Dialect {
  readonly name: DialectName;
  /** What it does with each part of a request: docs/dialects.md. */
  readonly features: readonly Feature[];
  /** What a request names in the place of sending it; undefined: nothing. Unset: none can. */
  readonly refersTo?: (body: JsonObject) => Refers | undefined;
  /** Throws DIALECT_INVALID with every fault. */
  read(body: JsonObject, target: GenerateTarget, allowed?: Allowed, known?: KnownOfBody): Asked;
  /** Body of an answer with an error. */
  errorBody(error: PolarError, status: number): JsonObject;
  /** One model of the list. */
  modelBody(id: string): JsonObject;
  /** The list of models. */
  modelsBody(ids: readonly string[]): JsonObject;
  /** Answer of the dialect's own count of a prompt's tokens; unset: it has none. */
  readonly countBody?: (tokens: number) => JsonObject;
}
