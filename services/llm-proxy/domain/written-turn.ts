// An assistant's turn read off the text that a Hermes or Qwen model writes: thinking, text, tool calls in JSON.
import { isObject, type JsonObject, textOf } from './json.ts';
import { memberText } from './json-spans.ts';

const CALL = '<tool_call>';
const CALL_END = '</tool_call>';

/** The message in the words of openai-chat. A call that is not whole, or no JSON, stays text. */
export function readWrittenTurn(written: string, hasTools: boolean, newCallId: () => string): JsonObject {
  const { thinking, said } = apart(written);
  const calls: JsonObject[] = [];
  const pieces = said.split(CALL_END);
  const last = pieces.pop() ?? '';
  let content = '';
  for (const piece of pieces) {
    const at = piece.indexOf(CALL);
    const called = hasTools && at >= 0 ? calledIn(piece.slice(at + CALL.length)) : undefined;
    content += called === undefined ? piece + CALL_END : piece.slice(0, at);
    if (called !== undefined) calls.push({ id: newCallId(), type: 'function', function: called });
  }
  content += last;
  const message: JsonObject = { role: 'assistant', content: calls.length > 0 ? content.trim() : content };
  if (thinking !== undefined) message['reasoning_content'] = thinking;
  if (calls.length > 0) message['tool_calls'] = calls;
  return message;
}

const THINKING = /^\s*<think>/;

/** Thinking ends with its mark, or where it was cut short; the mark that begins it may have been part of the prompt. */
function apart(written: string): { readonly thinking: string | undefined; readonly said: string } {
  const end = written.indexOf('</think>');
  const thinking = written.slice(0, end < 0 ? undefined : end).replace(THINKING, '');
  if (end < 0)
    return thinking === written
      ? { thinking: undefined, said: written }
      : { thinking: thinking.trim(), said: '' };
  return { thinking: thinking.trim(), said: written.slice(end + '</think>'.length).replace(/^\s+/, '') };
}

function calledIn(body: string): JsonObject | undefined {
  try {
    const written = body.trim();
    const call: unknown = JSON.parse(written);
    if (!isObject(call)) return undefined;
    const name = textOf(call['name']);
    if (name === undefined) return undefined;
    const given = call['arguments'] ?? {};
    if (typeof given === 'string') return { name, arguments: given };
    // As the model wrote them: written again, numbers would lose digits.
    const text = call['arguments'] === given ? memberText(written, 'arguments') : undefined;
    return { name, arguments: text ?? JSON.stringify(given) };
  } catch {
    return undefined;
  }
}
