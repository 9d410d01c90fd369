// The openai-chat dialect: what a harness gets to see of a reply.
import { arrayOf, isObject, type JsonObject } from '../../domain/json.ts';
import { DONE, eventOf } from '../../domain/sse.ts';
import type { ReplyWriter } from '../dialect.ts';

/** What a harness asked to see beside the reply. */
export interface Wants {
  readonly logprobs: boolean;
  /** A chunk with usage at the end of a stream. */
  readonly usage: boolean;
}

/** What engines add for the proxy. */
const REPLY_EXTRAS = [
  'prompt_token_ids',
  'prompt_logprobs',
  'prompt_text',
  'kv_transfer_params',
  'metrics',
  'metadata',
  'sglext',
];
const CHOICE_EXTRAS = [
  'token_ids',
  'response_token_ids',
  'prompt_token_ids',
  'input_token_ids',
  'meta_info',
  'routed_experts',
];

export function chatWriter(wants: Wants, shown: string): ReplyWriter {
  return {
    whole: (reply) => visibleReply(reply, wants, shown),
    stream: () => ({
      contentType: 'text/event-stream; charset=utf-8',
      keepAlive: () => ': keep-alive\n\n',
      chunk: (chunk) => {
        const seen = visibleChunk(chunk, wants, shown);
        return seen === undefined ? '' : eventOf(JSON.stringify(seen));
      },
      end: () => eventOf(DONE),
      // Clients take an error object for the end of the reply, or fail for good; a broken connection they try again.
      failed: () => undefined,
    }),
  };
}

/** The reply as the harness sees it: the model it asked for, nothing that it did not ask for. Changes the object. */
export function visibleReply(reply: JsonObject, wants: Wants, model: string): JsonObject {
  for (const key of REPLY_EXTRAS) delete reply[key];
  for (const choice of arrayOf(reply['choices'])) {
    if (!isObject(choice)) continue;
    for (const key of CHOICE_EXTRAS) delete choice[key];
    if (!wants.logprobs && 'logprobs' in choice) choice['logprobs'] = null;
  }
  if ('model' in reply) reply['model'] = model;
  return reply;
}

/** The chunk as the harness sees it; undefined where nothing is left of it. Changes the object. */
export function visibleChunk(chunk: JsonObject, wants: Wants, model: string): JsonObject | undefined {
  visibleReply(chunk, wants, model);
  if (!wants.usage) delete chunk['usage'];
  const empty = arrayOf(chunk['choices']).length === 0;
  return empty && !isObject(chunk['usage']) ? undefined : chunk;
}
