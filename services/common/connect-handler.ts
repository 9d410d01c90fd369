// RPCs by every protocol, on a port of Node.js: the one place that makes a handler of Connect's.
import { type ConnectNodeAdapterOptions, connectNodeAdapter } from '@connectrpc/connect-node';
import type { Handler } from './port.ts';
import { withReasons } from './unread-request.ts';
import { withValuesLimit } from './values-limit.ts';

export function connectHandler(options: ConnectNodeAdapterOptions): Handler {
  const connect = connectNodeAdapter({
    ...options,
    routes(router) {
      options.routes(router);
      for (const [i, handler] of router.handlers.entries())
        router.handlers[i] = withReasons(withValuesLimit(handler));
    },
  }) as Handler;
  return (request, response) => {
    nameServer(request);
    connect(request, response);
  };
}

/**
 * Connect makes a URL of the name that the caller has for this server, and ends the process where it cannot: with none, or an
 * IPv6 address without brackets, as Node's HTTP/2 client sends it. It means nothing here.
 */
function nameServer({ headers, httpVersionMajor }: Parameters<Handler>[0]): void {
  headers[httpVersionMajor === 2 ? ':authority' : 'host'] = 'localhost';
}
