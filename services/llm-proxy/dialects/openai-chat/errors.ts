// OpenAI's dialects: errors, with the reason as their code.
import type { PolarError, Reason } from '../../../common/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isOverflow, overflowSizes } from '../../domain/overflow.ts';

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

/** `conversationIn` is the member that holds what is too long; `code` the dialect's own word, where it has one. */
export function errorBody(
  error: PolarError,
  status: number,
  conversationIn = 'messages',
  code = codeOf(error.reason),
): JsonObject {
  const overflow = isOverflow(error);
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
  return {
    error: {
      message: overflow ? overflowMessage(error) : error.message,
      type,
      param: overflow ? conversationIn : (error.fields[0]?.field ?? null),
      code: overflow ? OVERFLOW_CODE : code,
    },
  };
}

export const OVERFLOW_CODE = 'context_length_exceeded';

const codeOf = (reason: Reason): string =>
  reason === 'CAPABILITY_INVALID' ? 'invalid_api_key' : reason.toLowerCase();

/** In the API's own words: Pi and OpenCode compact on them. */
export function overflowMessage({ message }: PolarError): string {
  const { prompt, reply, most } = overflowSizes(message);
  if (prompt === undefined || most === undefined) {
    return `Your input exceeds the context window of this model: ${message}`;
  }
  const much =
    reply === undefined
      ? `your messages resulted in ${prompt} tokens`
      : `you requested ${prompt + reply} tokens (${prompt} in the messages, ${reply} in the completion)`;
  return (
    `This model's maximum context length is ${most} tokens. However, ${much}. ` +
    'Please reduce the length of the messages.'
  );
}
