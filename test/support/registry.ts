// A registry of images that has none, and takes its time: docker takes one on 127.0.0.1 without TLS.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TestRegistry extends AsyncDisposable {
  /** `127.0.0.1:PORT`. */
  readonly host: string;
  /** Requests for images so far. */
  readonly asked: number;
  /** Let what is held go on. */
  answer(): void;
}

/** Requests for images wait until `answer`. */
export async function startRegistry(): Promise<TestRegistry> {
  const answered = Promise.withResolvers<void>();
  let asked = 0;
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json');
    response.setHeader('docker-distribution-api-version', 'registry/2.0');
    if (request.url === '/v2/') return response.end('{}');
    asked++;
    await answered.promise;
    response.statusCode = 404;
    return response.end(
      JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }] }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get asked() {
      return asked;
    },
    answer: () => answered.resolve(),
    async [Symbol.asyncDispose]() {
      answered.resolve();
      server.closeAllConnections();
      server.close();
    },
  };
}
