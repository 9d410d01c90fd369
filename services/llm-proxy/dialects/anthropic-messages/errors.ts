// The anthropic-messages dialect: errors by the API's types; what clients retry follows from type and status.
import type { PolarError } from '../../../common/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isOverflow, overflowSizes } from '../../domain/overflow.ts';

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

export function errorBody(error: PolarError, status: number): JsonObject {
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  const message = isOverflow(error) ? overflowMessage(error) : error.message;
  const details = error.fields.some(({ field }) => field === 'thread') ? { details: NO_THREADS } : {};
  return { type: 'error', error: { type, message, ...details } };
}

/** By this the official client's tool runner goes on without a thread: it sends the whole conversation each time. */
const NO_THREADS = { error_code: 'thread_unsupported_request', unsupported: ['thread'] };

/** In the API's own words: Claude Code compacts on the first, and asks for fewer tokens on the second. */
function overflowMessage({ message }: PolarError): string {
  const { prompt, reply, most } = overflowSizes(message);
  if (prompt === undefined || most === undefined) return `prompt is too long: ${message}`;
  if (reply === undefined || prompt >= most) return `prompt is too long: ${prompt} tokens > ${most} maximum`;
  return (
    `input length and \`max_tokens\` exceed context limit: ${prompt} + ${reply} > ${most}, ` +
    'decrease input length or `max_tokens` and try again'
  );
}
