// The openai-chat dialect: what a harness gets to see of a reply.
import { arrayOf, countOf, isObject, type JsonObject } from '../../domain/json.ts';
import { DONE, eventOf } from '../../domain/sse.ts';
import type { ReplyWriter, StreamWriter } from '../dialect.ts';
import { CallStream, type Declared, showCalls } from './tool-calls.ts';

/** What a harness asked to see, and how. */
export interface Wants {
  readonly logprobs: boolean;
  /** A chunk with usage at the end of a stream. */
  readonly usage: boolean;
  /** Unset: all tools are functions. */
  readonly declared?: Declared | undefined;
}

/** What engines add for the proxy. */
const REPLY_EXTRAS = [
  'prompt_token_ids',
  'prompt_logprobs',
  'prompt_text',
  'kv_transfer_params',
  'ec_transfer_params',
  'timings',
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
  'stop_reason',
  'matched_stop',
];

export const chatWriter = (wants: Wants, shown: string): ReplyWriter => ({
  whole: (reply) => wholeReply(reply, wants, shown),
  stream: () => chatStream(wants, shown),
});

function wholeReply(reply: JsonObject, wants: Wants, shown: string): JsonObject {
  visible(reply, wants, shown);
  for (const choice of arrayOf(reply['choices']).filter(isObject)) {
    if (isObject(choice['message'])) choice['message'] = told(choice['message']);
    if (wants.declared !== undefined) showCalls(choice, wants.declared);
  }
  return reply;
}

/** A whole message as its stream would tell it: with a content and a refusal, and of the rest what says something. */
function told({ role, content, refusal, ...rest }: JsonObject): JsonObject {
  const message: JsonObject = {
    role: role ?? 'assistant',
    // A stream says nothing where there is no text.
    content: content === '' ? null : (content ?? null),
    refusal: refusal ?? null,
  };
  for (const [key, value] of Object.entries(rest)) {
    const silent = value === null || value === undefined || (Array.isArray(value) && value.length === 0);
    if (!silent) message[key] = value;
  }
  return renamed(message);
}

function chatStream(wants: Wants, shown: string): StreamWriter {
  const streams = new Map<number, CallStream>();
  const rewrite = (chunk: JsonObject, declared: Declared): void => {
    for (const choice of arrayOf(chunk['choices']).filter(isObject)) {
      const index = countOf(choice['index']);
      const stream = streams.get(index) ?? new CallStream(declared);
      streams.set(index, stream);
      stream.show(choice);
    }
  };
  return {
    contentType: 'text/event-stream; charset=utf-8',
    keepAlive: () => ': keep-alive\n\n',
    chunk: (chunk) => {
      const seen = visibleChunk(chunk, wants, shown);
      if (seen === undefined) return '';
      if (wants.declared !== undefined) rewrite(seen, wants.declared);
      return eventOf(JSON.stringify(seen));
    },
    end: () => eventOf(DONE),
    // Clients take an error object for the end of the reply, or fail for good; a broken connection they try again.
    failed: () => undefined,
  };
}

/** The chunk as the harness sees it; undefined where nothing is left of it. Changes the object. */
export function visibleChunk(chunk: JsonObject, wants: Wants, shown: string): JsonObject | undefined {
  visible(chunk, wants, shown);
  for (const choice of arrayOf(chunk['choices'])) {
    if (isObject(choice) && isObject(choice['delta'])) stripped(choice['delta']);
  }
  if (!wants.usage) delete chunk['usage'];
  const empty = arrayOf(chunk['choices']).length === 0;
  return empty && !isObject(chunk['usage']) ? undefined : chunk;
}

/** A delta without what says nothing: some engines send all members with each. Changes the object. */
function stripped(delta: JsonObject): void {
  for (const key in delta) if (delta[key] === null || delta[key] === '') delete delta[key];
  renamed(delta);
}

/** The model that was asked for, and nothing that was not asked for. Changes the object. */
function visible(reply: JsonObject, wants: Wants, shown: string): void {
  for (const key of REPLY_EXTRAS) delete reply[key];
  for (const choice of arrayOf(reply['choices'])) {
    if (!isObject(choice)) continue;
    for (const key of CHOICE_EXTRAS) delete choice[key];
    if (!wants.logprobs && 'logprobs' in choice) choice['logprobs'] = null;
  }
  if ('model' in reply) reply['model'] = shown;
}

/** Reasoning goes by the name that harnesses read. Changes the object. */
function renamed(message: JsonObject): JsonObject {
  const { reasoning } = message;
  if (reasoning === undefined) return message;
  delete message['reasoning'];
  if (reasoning !== null) message['reasoning_content'] ??= reasoning;
  return message;
}
