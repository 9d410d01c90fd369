// What an engine's answer with an error means.
import { PolarError } from '../../common/errors.ts';
import { isObject, objectOf, textOf } from '../domain/json.ts';

const MESSAGE_CHARS_MAX = 500;

/** The request itself is at fault. */
const REFUSED = [400, 413, 422];
/** The engine may do it later. */
const ABSENT = [408, 429, 500, 502, 503, 504];

/** ENGINE_REFUSED, ENGINE_UNAVAILABLE or ENGINE_ERROR. `name` is the engine's address. */
export function failureOfStatus(name: string, status: number, message: string): PolarError {
  if (REFUSED.includes(status)) return new PolarError('ENGINE_REFUSED', message);
  if (ABSENT.includes(status)) {
    return new PolarError('ENGINE_UNAVAILABLE', `the engine at ${name} answers ${status}: ${message}`, {
      retryAfterMs: 1_000,
    });
  }
  return new PolarError(
    'ENGINE_ERROR',
    `the engine at ${name} answers ${status}: ${message}. Check gateway.nodes[].inference and model_served`,
  );
}

/** The message of an error body, in whichever form. */
export function messageIn(text: string): string {
  const body = parsed(text);
  const message =
    textOf(objectOf(body['error'])['message']) ?? textOf(body['message']) ?? textOf(body['detail']);
  return (message ?? text.trim()).slice(0, MESSAGE_CHARS_MAX);
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
