// Calls in a history whose arguments are no JSON object. The model wrote them so, harnesses send them back as they were, and
// most templates want objects: some engines refuse the request, and with it all that follow. They have none then, as vLLM
// takes them by itself.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

/** In the words of SGLang and llama-server. */
const REFUSED = /tool call (?:function\.)?arguments/i;

export const wantsArgumentObjects = (answer: string): boolean => REFUSED.test(answer);

/** The messages with objects; undefined: all are. */
export function withArgumentObjects(messages: readonly JsonValue[]): JsonValue[] | undefined {
  const made = messages.map(withObjects);
  return made.every((message, i) => message === messages[i]) ? undefined : made;
}

function withObjects(message: JsonValue): JsonValue {
  const calls = isObject(message) ? arrayOf(message['tool_calls']) : [];
  if (calls.every(hasObject)) return message;
  return { ...objectOf(message), tool_calls: calls.map((call) => (hasObject(call) ? call : withNone(call))) };
}

function hasObject(call: JsonValue): boolean {
  const { arguments: text } = objectOf(objectOf(call)['function']);
  if (typeof text !== 'string') return true;
  try {
    return isObject(JSON.parse(text) as JsonValue);
  } catch {
    return false;
  }
}

const withNone = (call: JsonValue): JsonObject => ({
  ...objectOf(call),
  function: { ...objectOf(objectOf(call)['function']), arguments: '{}' },
});
