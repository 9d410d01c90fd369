// The openai-chat dialect: what a harness gets to see of a reply, and errors.
import type { PolarError, Reason } from '../../common/errors.ts';
import { arrayOf, isObject, type JsonObject } from '../domain/json.ts';
import type { ChatRequest } from './openai-chat.ts';

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

/** The reply as the harness sees it: the model it asked for, nothing that it did not ask for. Changes the object. */
export function visibleReply(reply: JsonObject, request: ChatRequest, model: string): JsonObject {
  for (const key of REPLY_EXTRAS) delete reply[key];
  for (const choice of arrayOf(reply['choices'])) {
    if (!isObject(choice)) continue;
    for (const key of CHOICE_EXTRAS) delete choice[key];
    if (!request.logprobs && 'logprobs' in choice) choice['logprobs'] = null;
  }
  if ('model' in reply) reply['model'] = model;
  return reply;
}

/** The chunk as the harness sees it; undefined where nothing is left of it. Changes the object. */
export function visibleChunk(chunk: JsonObject, request: ChatRequest, model: string): JsonObject | undefined {
  visibleReply(chunk, request, model);
  if (!request.usage) delete chunk['usage'];
  const empty = arrayOf(chunk['choices']).length === 0;
  return empty && !isObject(chunk['usage']) ? undefined : chunk;
}

/** HTTP status of a failure; what a harness retries and what it does not follows from it. */
const STATUS: Partial<Record<Reason, number>> = {
  CAPABILITY_INVALID: 401,
  SESSION_CLOSED: 403,
  NOT_FOUND: 404,
  DIALECT_INVALID: 400,
  INVALID_REQUEST: 400,
  BODY_TOO_LARGE: 413,
  ENGINE_REFUSED: 400,
  CALLS_IN_FLIGHT_LIMIT: 429,
  CALLS_PER_ATTEMPT_LIMIT: 429,
  ENGINE_ERROR: 502,
  ENGINE_NO_TOKEN_IDS: 502,
  ENGINE_STREAM_CUT: 502,
  ENGINE_TIMEOUT: 504,
  ENGINE_UNAVAILABLE: 503,
  RECORD_NOT_WRITTEN: 503,
  NATS_UNAVAILABLE: 503,
  NATS_STORE_FULL: 503,
  SHUTTING_DOWN: 503,
};

export const statusOf = (error: PolarError): number => STATUS[error.reason] ?? 500;

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

/** How engines say that a prompt is too long. */
const OVERFLOW = /context[ _](length|window)|maximum context|prompt is too long|longer than the model/i;

/** The error body, with the reason as its code. */
export function errorBody(error: PolarError): JsonObject {
  const status = statusOf(error);
  const overflow = error.reason === 'ENGINE_REFUSED' && OVERFLOW.test(error.message);
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
  return {
    error: {
      message: error.message,
      type,
      param: overflow ? 'messages' : (error.fields[0]?.field ?? null),
      code: overflow ? 'context_length_exceeded' : codeOf(error.reason),
    },
  };
}

const codeOf = (reason: Reason): string =>
  reason === 'CAPABILITY_INVALID' ? 'invalid_api_key' : reason.toLowerCase();

/** One model of the models list. */
export const modelBody = (id: string): JsonObject => ({
  id,
  object: 'model',
  created: 0,
  owned_by: 'polar',
});
