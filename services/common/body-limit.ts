// The time limit of a request's body over HTTP/2. For HTTP/1 Node.js has one; here a caller could send its head, then a byte
// a minute, and hold its place for ever.
import { constants, type Http2ServerRequest } from 'node:http2';
import type { Handler } from './port.ts';

/** A request whose last byte has not come within `requestMs` is cut. Answers have no such limit. */
export function withBodyLimit(handler: Handler, requestMs: number): Handler {
  return (request, response) => {
    if ('stream' in request && !request.stream.endAfterHeaders) limit(request, requestMs);
    handler(request, response);
  };
}

function limit(request: Http2ServerRequest, requestMs: number): void {
  const { stream } = request;
  const timer = setTimeout(() => {
    // What has come whole is not always read to its end.
    if (!stream.closed && stream.state.remoteClose !== 1) stream.close(constants.NGHTTP2_CANCEL);
  }, requestMs);
  const stop = (): void => clearTimeout(timer);
  request.once('end', stop);
  stream.once('close', stop);
}
