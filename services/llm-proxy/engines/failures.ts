// What an engine's answer with an error means.
import { PolarError } from '../../common/errors.ts';
import { parseLenient } from '../../common/lenient-json.ts';
import { objectOf, textOf } from '../domain/json.ts';

const MESSAGE_CHARS_MAX = 500;

/** The request itself is at fault. */
const REFUSED = [400, 413, 422];
/** The engine has too much to do. */
const BUSY = [408, 429];
/** It never will: no such method, no such version of HTTP. */
const NEVER = [501, 505];

/** What is wrong with a request though llama-server says 500, as if it had failed itself. */
const REQUESTS_OWN =
  /^(?:image|audio) input is not supported|^failed to parse tool call arguments|\bJinja Exception: /i;

/** The status that an answer would have from an engine that tells its own faults from those of requests. */
export const statusMeant = (status: number, message: string): number =>
  status === 500 && REQUESTS_OWN.test(message) ? 400 : status;

/** Whether an answer with this status says that the engine is not in order; one that is busy is. */
export const isFault = (status: number): boolean => status >= 500 && status < 600;

/** The engine may do it later. What stands before APIs has numbers of its own above 504, and means the same with them. */
const isAbsent = (status: number): boolean =>
  BUSY.includes(status) || (isFault(status) && !NEVER.includes(status));

/** Where the engine says nothing of when to ask again. */
const RETRY_AFTER_MS = 1_000;

/** ENGINE_REFUSED, ENGINE_UNAVAILABLE or ENGINE_ERROR. `name` is the engine's address. */
export function failureOfStatus(
  name: string,
  status: number,
  message: string,
  retryAfterMs = RETRY_AFTER_MS,
): PolarError {
  if (REFUSED.includes(status)) return new PolarError('ENGINE_REFUSED', message);
  if (isAbsent(status)) {
    return new PolarError('ENGINE_UNAVAILABLE', `the engine at ${name} answers ${status}: ${message}`, {
      retryAfterMs,
    });
  }
  return new PolarError(
    'ENGINE_ERROR',
    `the engine at ${name} answers ${status}: ${message}. Check gateway.nodes[].inference and model_served`,
  );
}

/** The message of an error body, in whichever form. */
export function messageIn(text: string): string {
  const body = objectOf(parseLenient(text));
  const message =
    textOf(objectOf(body['error'])['message']) ??
    textOf(body['error']) ??
    textOf(body['message']) ??
    textOf(body['detail']);
  return (message ?? titleIn(text) ?? text.trim()).slice(0, MESSAGE_CHARS_MAX);
}

/** What a page for people says, as something between the proxy and the engine makes it. */
function titleIn(text: string): string | undefined {
  if (!/^\s*</.test(text)) return undefined;
  const title = /<title>([^<]*)<\/title>/i.exec(text)?.[1]?.trim();
  return title ? `an HTML page, "${title.slice(0, MESSAGE_CHARS_MAX)}"` : 'an HTML page';
}

/** 200 with something that is no JSON object. */
export const notJson = (name: string, text: string): PolarError =>
  new PolarError(
    'ENGINE_ERROR',
    `the engine at ${name} answered with no JSON object but ${titleIn(text) ?? `${text.length} characters`}`,
  );

/** 200 without the ids that were asked for. */
export const notIds = (name: string): PolarError =>
  new PolarError('ENGINE_ERROR', `the engine at ${name} answered with no token ids where it was to render`);

/** 200 without the stream that was asked for; a page may say why. */
export function noStream(name: string, text: string): PolarError {
  const title = titleIn(text);
  const why = title === undefined ? '' : `: ${title}`;
  return new PolarError('ENGINE_ERROR', `the engine at ${name} answered without a stream${why}`);
}
