// The chunks of a stream made from a whole reply, for engines that tell ids in whole replies alone.
import { arrayOf, countOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

/** `chat.completion.chunk`s: for each choice its role, what was said part by part, its end; then the usage. */
export function* chunksOf(reply: JsonObject): Generator<JsonObject, void> {
  const { id, created, model } = reply;
  const head = {
    id: id ?? null,
    object: 'chat.completion.chunk',
    created: created ?? 0,
    model: model ?? null,
  };
  for (const choice of arrayOf(reply['choices']).filter(isObject)) {
    for (const part of partsOf(choice)) yield { ...head, choices: [part] };
  }
  yield { ...head, choices: [], usage: reply['usage'] ?? null };
}

/** What engines tell of the stop string or id that ended a choice. */
export function metIn({ stop_reason: reason, matched_stop: matched }: JsonObject): JsonObject {
  return {
    ...(reason !== undefined && { stop_reason: reason }),
    ...(matched !== undefined && { matched_stop: matched }),
  };
}

function* partsOf(choice: JsonObject): Generator<JsonObject, void> {
  const index = countOf(choice['index']);
  const part = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
    index,
    delta,
    finish_reason: null,
    ...more,
  });
  const { role, content, tool_calls: calls, ...rest } = objectOf(choice['message']);
  // With the first part of the reply, whatever that says: they are of all its tokens.
  let logprobs = choice['logprobs'] ?? null;
  const said = (delta: JsonObject, more: JsonObject = {}): JsonObject => {
    const told = logprobs === null ? more : { ...more, logprobs };
    logprobs = null;
    return part(delta, told);
  };
  yield part({ role: role ?? 'assistant' });
  for (const [key, value] of Object.entries(rest)) if (value !== null) yield said({ [key]: value });
  if (content !== undefined && content !== null) yield said({ content });
  for (const [at, call] of arrayOf(calls).entries()) {
    yield said({ tool_calls: [{ index: at, ...objectOf(call) } as JsonValue] });
  }
  yield said({}, { finish_reason: choice['finish_reason'] ?? null, ...metIn(choice) });
}
