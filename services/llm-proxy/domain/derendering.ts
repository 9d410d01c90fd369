// What vLLM's chats do to a reply, and its derendering does not: that makes text of all ids which it is given, be it of the
// one that ended the turn or of a stop string, and leaves finish_reason and the number of calls as they are.
import { arrayOf, countOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from './json.ts';

/** Members of a message that hold text, those that are sampled last first. */
const TEXTS = ['content', 'reasoning', 'reasoning_content'];
const SILENT: JsonObject = { role: 'assistant', content: '' };

/** Generated choices as they are to be derendered: those with ids, without what is no part of the text. */
export function toDerender(generated: readonly JsonObject[], sent: JsonObject): JsonObject[] {
  return generated
    .filter((choice) => arrayOf(choice['token_ids']).length > 0)
    .map((choice) => {
      const ids = idsOfText(choice, sent);
      // Refused without any, which then are for its logprobs alone.
      return ids.length === 0 ? choice : { ...choice, token_ids: [...ids] };
    });
}

/**
 * A choice as a chat would tell it. `sent` is the request of text mode, `derendered` what was made of the choice; unset: it was
 * not derendered.
 */
export function asInChat(
  generated: JsonObject,
  derendered: JsonObject | undefined,
  sent: JsonObject,
): JsonObject {
  const { index = 0, finish_reason: finish = null, stop_reason: stop = null } = generated;
  const silent = derendered === undefined || idsOfText(generated, sent).length === 0;
  const message = silent ? SILENT : objectOf(derendered['message']);
  const told = finish === 'stop' && typeof stop === 'string' ? cutAt(message, stop, sent) : message;
  const calls = arrayOf(told['tool_calls']);
  // A tool that was to be called by its name is no reason of the model's own.
  const calling = finish === 'stop' && calls.length > 0 && !isObject(sent['tool_choice']);
  return {
    logprobs: null,
    ...derendered,
    index,
    message:
      sent['parallel_tool_calls'] === false && calls.length > 1
        ? { ...told, tool_calls: calls.slice(0, 1) }
        : told,
    finish_reason: calling ? 'tool_calls' : finish,
    stop_reason: stop,
  };
}

const showsStop = (sent: JsonObject): boolean => sent['include_stop_str_in_output'] === true;

/** Without the one that ended the turn: the model's own, or one of `stop_token_ids`, which has its id as stop_reason. */
function idsOfText(
  { token_ids: ids, finish_reason: finish, stop_reason: stop }: JsonObject,
  sent: JsonObject,
): readonly JsonValue[] {
  const endsUnseen = finish === 'stop' && typeof stop !== 'string' && !showsStop(sent);
  return endsUnseen ? arrayOf(ids).slice(0, -1) : arrayOf(ids);
}

/** The text ends at the first stop string: an earlier one would have ended it, unless more tokens were wanted then. */
function cutAt(message: JsonObject, stop: string, sent: JsonObject): JsonObject {
  const key = TEXTS.find((one) => textOf(message[one])?.includes(stop));
  if (key === undefined) return message;
  const text = String(message[key]);
  const at = countOf(sent['min_tokens']) > 0 ? text.lastIndexOf(stop) : text.indexOf(stop);
  return { ...message, [key]: text.slice(0, showsStop(sent) ? at + stop.length : at) };
}
