// The anthropic-messages dialect: whole replies.
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import type { ReplyWriter } from '../dialect.ts';
import { reasoningIn, textIn } from '../said.ts';
import { sealReasoning } from '../sealed-reasoning.ts';
import { inputOf } from './arguments.ts';
import { emptyMessage, messageId, stopOf, toolUse, usageOf, type View } from './message.ts';
import { MessageStream } from './stream.ts';

export const messagesWriter = (view: View): ReplyWriter => ({
  whole: (reply) => wholeMessage(reply, view),
  stream: () => new MessageStream(view),
});

function wholeMessage(reply: JsonObject, view: View): JsonObject {
  const choice = objectOf(arrayOf(reply['choices'])[0]);
  const id = messageId(reply);
  const content = blocksOf(objectOf(choice['message']), id, view.showsThinking);
  const calls = content.filter(({ type }) => type === 'tool_use').length;
  return {
    ...emptyMessage(id, view.shown),
    content,
    ...stopOf(choice, calls, view.stops),
    usage: usageOf(objectOf(reply['usage'])),
  };
}

function blocksOf(message: JsonObject, id: string, showsThinking: boolean): JsonObject[] {
  const blocks: JsonObject[] = [];
  const thinking = reasoningIn(message);
  if (thinking !== '') {
    const shown = showsThinking ? thinking : '';
    blocks.push({ type: 'thinking', thinking: shown, signature: sealReasoning(thinking) });
  }
  const text = textIn(message);
  if (text !== undefined) blocks.push({ type: 'text', text });
  for (const [i, call] of arrayOf(message['tool_calls']).filter(isObject).entries()) {
    const made = objectOf(call['function']);
    const input = inputOf(textOf(made['arguments']) ?? '');
    blocks.push({ ...toolUse(id, i, call), input });
  }
  return blocks;
}
