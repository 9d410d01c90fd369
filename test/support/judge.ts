// A judge behind OpenAI's chat API, which answers what a test tells it to.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly model: string;
    readonly temperature: number;
    readonly messages: readonly { readonly role: string; readonly content: string }[];
  };
}

/** Writes an answer, or a text that becomes the content of one. */
export type Answer = string | ((response: ServerResponse, asked: Asked) => void);

export interface TestJudge extends AsyncDisposable {
  readonly url: string;
  /** All requests since the last `answers`. */
  readonly asked: readonly Asked[];
  /** From now on, one after the other; the last one again and again. */
  answers(...answers: Answer[]): void;
}

export async function startJudge(): Promise<TestJudge> {
  const asked: Asked[] = [];
  let queue: Answer[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Asked['body'];
    const one = { path: request.url ?? '', headers: request.headers, body };
    asked.push(one);
    const answer = (queue.length > 1 ? queue.shift() : queue[0]) ?? 'nothing to say';
    if (typeof answer === 'function') return answer(response, one);
    const message = { role: 'assistant', content: answer };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ id: 'x', object: 'chat.completion', choices: [{ index: 0, message }] }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answers(...answers) {
      asked.length = 0;
      queue = answers;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
