// Fields of a request that an API does not know, as it says itself. Servers with OpenAI's chat API know more of them or
// fewer, and some refuse a request for each one that they do not.
import type { JsonObject } from './json.ts';

/** In the words of OpenAI (newer and older), Google, and of servers that check with pydantic. */
const WORDS = [
  /(?:unknown|unsupported) parameter:? '([\w.]+)'/gi,
  /unrecognized request arguments? supplied: ([\w, ]+)/gi,
  /unknown name "([\w.]+)"/gi,
  /"loc": ?\["body", ?"(\w+)"\][^{}]*extra inputs/gi,
  /"extra_forbidden"[^{}]*"loc": ?\["body", ?"(\w+)"\]/gi,
];

/** What may be left out: how to sample and to think. Without anything else a reply would answer another question. */
const SPARED: readonly string[] = [
  'add_generation_prompt',
  'chat_template_kwargs',
  'continue_final_message',
  'frequency_penalty',
  'max_tokens',
  'min_p',
  'parallel_tool_calls',
  'presence_penalty',
  'reasoning_effort',
  'repetition_penalty',
  'seed',
  'temperature',
  'top_k',
  'top_p',
];

/** Those of the request's fields that the answer names and that can be spared. */
export function unknownFields(sent: JsonObject, answer: string): string[] {
  const named = WORDS.flatMap((words) =>
    [...answer.matchAll(words)].flatMap(([, names = '']) => names.split(/[, ]+/)),
  );
  const fields = new Set(named.map((name) => name.split('.', 1)[0] ?? ''));
  return SPARED.filter((field) => fields.has(field) && sent[field] !== undefined);
}

/** The request without them; a limit by its other name. */
export function withoutFields(sent: JsonObject, fields: ReadonlySet<string>): JsonObject {
  const left: JsonObject = {};
  for (const [key, value] of Object.entries(sent)) if (!fields.has(key)) left[key] = value;
  const { max_tokens: most } = sent;
  if (fields.has('max_tokens') && most !== undefined) left['max_completion_tokens'] ??= most;
  return left;
}
