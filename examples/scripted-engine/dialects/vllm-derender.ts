// vLLM's derendering: of generated ids a chat's reply, as bare as a server with parsers makes it. All ids are text, also the one that
// ended the turn and those of a stop string; finish_reason stays what it was, whatever was called.
import { randomUUID } from 'node:crypto';
import type { Engine } from '../engine.ts';
import { RequestFault } from '../faults.ts';
import { messageOf } from '../reply/generation.ts';
import { type DerenderRequest, toolsOf } from '../request.ts';
import { type Body, tokenEntry } from './dialect.ts';
import { messageBody } from './vllm.ts';

/** Its usage knows no prompt. Throws a RequestFault where a choice has no ids. */
export function derendered(
  engine: Engine,
  { generate_response: from, chat_request: request }: DerenderRequest,
): Body {
  const sampled = from.choices.reduce((sum, { token_ids: ids }) => sum + ids.length, 0);
  return {
    id: from.request_id,
    object: 'chat.completion',
    created: engine.created,
    model: from.model,
    choices: from.choices.map((choice) => choiceOf(engine, request, choice)),
    usage: { prompt_tokens: 0, total_tokens: sampled, completion_tokens: sampled },
  };
}

function choiceOf(
  { model: { tokenizer }, options }: Engine,
  request: DerenderRequest['chat_request'],
  { index, token_ids: ids, logprobs, ...ending }: DerenderRequest['generate_response']['choices'][number],
): Body {
  if (ids.length === 0) throw new RequestFault(400, `choice ${index} has empty or null token_ids`);
  const { tool_format: format, keep_content_newline: keepContentNewline } = options.switches;
  const message = messageOf(tokenizer, ids, { format, keepContentNewline, tools: toolsOf(request) });
  const calls = message.calls.map((called) => ({
    id: randomUUID().replaceAll('-', '').slice(0, 16),
    type: 'function',
    function: called,
  }));
  const content = logprobs?.content.map(({ token_id: id, logprob }) => {
    const entry = tokenEntry({ tokenizer, request }, { id, logprob });
    return { ...entry, top_logprobs: [entry] };
  });
  return {
    index,
    message: messageBody(message, calls),
    logprobs: content === undefined ? null : { content },
    finish_reason: ending.finish_reason,
    stop_reason: ending.stop_reason ?? null,
    token_ids: request.return_token_ids === true ? ids : null,
  };
}
