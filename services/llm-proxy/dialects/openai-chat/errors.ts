// OpenAI's dialects: errors, with the reason as their code.
import type { PolarError, Reason } from '../../../common/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isOverflow } from '../../domain/overflow.ts';

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

export function errorBody(error: PolarError, status: number): JsonObject {
  const overflow = isOverflow(error);
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
