// Content digests of messages: equal digest = equal content, however a harness writes it down.
import { sha256Half } from '../../common/ids.ts';
import { arrayOf, canonicalJson, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

/** A message or the tool definitions, with a name for the content. */
export interface Digested {
  /** First 128 bits of the SHA-256 of the canonical form, as lower-case hex. */
  readonly digest: string;
  /** As sent. */
  readonly value: JsonValue;
}

/**
 * Digests of the objects that have one: those of a known body are the very same from turn to turn. Not with the objects
 * themselves: V8's small collections keep what a WeakMap holds, so that no message would be gone before a large one.
 */
const known = new WeakMap<object, string>();

function digested(value: JsonValue, contentOf: (value: JsonValue) => JsonValue): Digested {
  if (typeof value !== 'object' || value === null) return { digest: digestOf(contentOf(value)), value };
  let digest = known.get(value);
  if (digest === undefined) {
    digest = digestOf(contentOf(value));
    known.set(value, digest);
  }
  return { digest, value };
}

const digestOf = (content: JsonValue): string => sha256Half(canonicalJson(content));

/** The message must not be changed afterwards. */
export const digestMessage = (message: JsonValue): Digested => digested(message, contentOf);

/** The digests of messages. */
export const digestIn = ({ digest }: Digested): string => digest;

/** A message that no request has brought: it will not come again as the same object. */
export const digestReply = (message: JsonValue): Digested => ({
  digest: digestOf(contentOf(message)),
  value: message,
});

/** The tools must not be changed afterwards. */
export const digestTools = (tools: readonly JsonValue[]): Digested =>
  digested(tools as JsonValue[], (value) => value);

/**
 * What a message says, without what harnesses change when they send it back: an empty content may be null, "" or
 * absent; tool arguments may be spaced and escaped otherwise; reasoning goes by two names.
 */
function contentOf(message: JsonValue): JsonValue {
  if (!isObject(message)) return message;
  const { reasoning, reasoning_content, content, tool_calls } = message;
  const said: JsonObject = {};
  for (const key in message) {
    const value = message[key];
    if (value !== undefined && !TOLD_APART.has(key) && !isEmpty(value)) said[key] = value;
  }
  const thought = isEmpty(reasoning_content) ? reasoning : reasoning_content;
  if (!isEmpty(thought)) said['reasoning'] = thought ?? null;
  const text = textPart(content);
  if (!isEmpty(text)) said['content'] = text ?? null;
  if (!isEmpty(tool_calls)) said['tool_calls'] = arrayOf(tool_calls).map(toolCall);
  return said;
}

const TOLD_APART: ReadonlySet<string> = new Set(['reasoning', 'reasoning_content', 'content', 'tool_calls']);

const isEmpty = (value: JsonValue | undefined): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** One text part alone is the text. */
function textPart(content: JsonValue | undefined): JsonValue | undefined {
  const [part, ...others] = arrayOf(content);
  if (others.length > 0 || !isObject(part) || part['type'] !== 'text') return content;
  return Object.keys(part).length === 2 ? part['text'] : content;
}

function toolCall(call: JsonValue): JsonValue {
  if (!isObject(call)) return call;
  const { index: _, function: named, ...rest } = call;
  const called = objectOf(named);
  return { ...rest, function: { ...called, arguments: parsed(called['arguments']) } };
}

/** Arguments as their value; what is no JSON stays text. */
function parsed(text: JsonValue | undefined): JsonValue {
  if (typeof text !== 'string') return text ?? null;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
