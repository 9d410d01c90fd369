// Answers to harnesses over either HTTP version.
import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import { constants } from 'node:http2';
import type { PolarError } from '../../common/errors.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { JsonObject } from '../domain/json.ts';
import { statusOf } from './status.ts';

/** A whole JSON answer. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: JsonObject,
  headers: object = {},
): void {
  sendText(response, status, JSON.stringify(body), headers);
}

/** The same, written already. */
export function sendText(response: ServerResponse, status: number, text: string, headers: object = {}): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  // As text it goes out in one piece with the head.
  response.end(text);
}

/** The error in the dialect's form, unless nobody waits for it any more; where an answer has begun already, the connection is cut: never a clean end. */
export function sendError(
  response: ServerResponse,
  error: PolarError,
  dialect: Dialect,
  status = statusOf(error),
): void {
  if (isGone(response) || response.writableEnded) return;
  if (response.headersSent) {
    cut(response);
    return;
  }
  const retryAfterS = Math.ceil((error.retryAfterMs ?? 1_000) / 1_000);
  const headers = {
    ...((status === 503 || status === 429) && { 'retry-after': String(retryAfterS) }),
    // What the client still sends is not wanted.
    ...(status === 413 && response.req.httpVersionMajor === 1 && { connection: 'close' }),
  };
  sendJson(response, status, dialect.errorBody(error, status), headers);
}

/** Whether its client has left. Answers over HTTP/2 do not say so themselves. */
export function isGone(response: ServerResponse): boolean {
  const { stream } = response as unknown as Partial<Http2ServerResponse>;
  return stream === undefined ? response.destroyed : stream.destroyed || stream.closed;
}

/** End the connection so that no client takes what it has for a whole answer. */
export function cut(response: ServerResponse): void {
  const { stream } = response as unknown as Partial<Http2ServerResponse>;
  if (stream === undefined) response.destroy();
  else stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}
