// The google-generate dialect: errors by the API's statuses, with the faulty fields and when to try again.
import type { PolarError } from '../../../common/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import { isOverflow, overflowSizes } from '../../domain/overflow.ts';

const STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  410: 'FAILED_PRECONDITION',
  429: 'RESOURCE_EXHAUSTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

export function errorBody(error: PolarError, status: number): JsonObject {
  const word = STATUSES[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL');
  const message = isOverflow(error) ? overflowMessage(error.message) : error.message;
  const details = detailsOf(error);
  return { error: { code: status, message, status: word, ...(details.length > 0 && { details }) } };
}

/** In the API's own words. */
function overflowMessage(message: string): string {
  const { prompt, most } = overflowSizes(message);
  if (prompt === undefined || most === undefined || prompt < most) {
    return `The input token count exceeds the maximum number of tokens allowed: ${message}`;
  }
  return `The input token count (${prompt}) exceeds the maximum number of tokens allowed (${most}).`;
}

function detailsOf({ fields, retryAfterMs }: PolarError): JsonObject[] {
  const details: JsonObject[] = [];
  if (fields.length > 0) {
    const fieldViolations = fields.map(({ field, description }) => ({ field, description }));
    details.push({ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations });
  }
  if (retryAfterMs !== undefined) {
    const retryDelay = `${retryAfterMs / 1_000}s`;
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
  }
  return details;
}
