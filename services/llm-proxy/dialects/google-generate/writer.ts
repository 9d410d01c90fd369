// The google-generate dialect: whole replies.
import { arrayOf, countOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import type { ReplyWriter } from '../dialect.ts';
import { reasoningIn, textIn } from '../said.ts';
import { callId, closing, endingOf, responseIdOf, usageOf, type View } from './candidate.ts';
import { ContentStream } from './stream.ts';

export const contentWriter = (view: View): ReplyWriter => ({
  whole: (reply) => wholeContent(reply, view),
  stream: () => new ContentStream(view),
});

function wholeContent(reply: JsonObject, view: View): JsonObject {
  const responseId = responseIdOf(reply);
  return {
    candidates: arrayOf(reply['choices'])
      .filter(isObject)
      .map((choice) => candidateOf(choice, responseId, view)),
    usageMetadata: usageOf(objectOf(reply['usage'])),
    modelVersion: view.shown,
    responseId,
  };
}

function candidateOf(choice: JsonObject, responseId: string, { showsThoughts }: View): JsonObject {
  const message = objectOf(choice['message']);
  const reasoning = reasoningIn(message);
  const text = textIn(message);
  const calls = arrayOf(message['tool_calls']).map((call, i) => {
    const { id, function: made } = objectOf(call);
    const { name, arguments: args } = objectOf(made);
    return { id: callId(id, responseId, i), name: textOf(name) ?? '', arguments: textOf(args) ?? '' };
  });
  const ending = endingOf(textOf(choice['finish_reason']), reasoning, calls);
  const parts: JsonObject[] = [];
  if (showsThoughts && reasoning !== '') parts.push({ text: reasoning, thought: true });
  if (text !== undefined) parts.push({ text });
  return { ...closing([...parts, ...ending.parts], ending.said), index: countOf(choice['index']) };
}
