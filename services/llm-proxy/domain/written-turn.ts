// An assistant's turn read off the text that a Hermes or Qwen model writes: thinking, text, tool calls in JSON.
import { isObject, type JsonObject, textOf } from './json.ts';

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

/** Thinking ends with its mark; the mark that begins it may have been part of the prompt. */
function apart(written: string): { readonly thinking: string | undefined; readonly said: string } {
  const end = written.indexOf('</think>');
  if (end < 0) return { thinking: undefined, said: written };
  const thinking = written.slice(0, end).replace(/^\s*<think>/, '');
  return { thinking: thinking.trim(), said: written.slice(end + '</think>'.length).replace(/^\s+/, '') };
}

function calledIn(body: string): JsonObject | undefined {
  try {
    const call: unknown = JSON.parse(body.trim());
    if (!isObject(call)) return undefined;
    const name = textOf(call['name']);
    const given = call['arguments'] ?? {};
    if (name === undefined) return undefined;
    return { name, arguments: typeof given === 'string' ? given : JSON.stringify(given) };
  } catch {
    return undefined;
  }
}
