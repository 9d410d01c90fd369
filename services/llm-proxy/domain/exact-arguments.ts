// Arguments of tool calls that an engine tells as values, in the place of their text: they are written again, with the digits
// that they came with.
import { parseExact } from './exact-numbers.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

/** Anything but a string. */
const VALUE = /"arguments":\s?[^"\s]/;

/** Puts them in the place of those in what was read of the text, a whole reply or a chunk. */
export function exactArguments<T extends JsonValue | undefined>(read: T, text: string): T {
  if (!isObject(read) || !VALUE.test(text)) return read;
  const exact = callsIn(exactly(text));
  for (const [i, call] of callsIn(read).entries()) {
    const { arguments: args } = exact[i] ?? {};
    if (args !== undefined) call['arguments'] = args;
  }
  return read;
}

/** Numbers that are none are no JSON: then there is nothing more exact than what was read. */
function exactly(text: string): JsonValue {
  try {
    return parseExact(text);
  } catch {
    return null;
  }
}

/** The functions called, in their order. */
const callsIn = (said: JsonValue): JsonObject[] =>
  arrayOf(objectOf(said)['choices'])
    .flatMap((choice) => [objectOf(choice)['message'], objectOf(choice)['delta']])
    .flatMap((message) => arrayOf(objectOf(message)['tool_calls']))
    .map((call) => objectOf(objectOf(call)['function']));
