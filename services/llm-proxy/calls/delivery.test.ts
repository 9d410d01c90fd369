import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import { openaiChat } from '../dialects/openai-chat/dialect.ts';
import { sendError } from '../http/answer.ts';
import { Delivery } from './delivery.ts';

const ASKED = { messages: [{ role: 'user', content: 'x' }] };
const TARGET = { kind: 'generate', dialect: 'openai-chat' } as const;

/** Sends a request; the client leaves when what is returned is called. */
function leavesHttp1(port: number): () => void {
  const sent = request({ port, method: 'POST' }).on('error', () => {});
  sent.end('{}');
  return () => sent.destroy();
}

function leavesHttp2(port: number): () => void {
  const session = connect(`http://127.0.0.1:${port}`).on('error', () => {});
  const sent = session.request({ ':method': 'POST', ':path': '/' }).on('error', () => {});
  sent.end('{}');
  return () => session.destroy();
}

/** More than the kernel and Node keep for a client that does not read. */
const [PIECES, PIECE] = [160, 'x'.repeat(128 * 1024)];

describe('a reply for a client that has left before', () => {
  for (const version of [1, 2]) {
    it(`is waited for by nobody, over HTTP/${version}`, async () => {
      const gone = Promise.withResolvers<ServerResponse>();
      const take = (response: ServerResponse): void => {
        response.once('close', () => gone.resolve(response));
        leave();
      };
      const server =
        version === 1
          ? createServer((_, response) => take(response))
          : createHttp2Server((_, response) => take(response as unknown as ServerResponse));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const leave = version === 1 ? leavesHttp1(port) : leavesHttp2(port);
      try {
        const response = await gone.promise;
        let left = false;
        const stream = openaiChat.read(ASKED, TARGET).writer('m').stream();
        const delivery = new Delivery(
          openaiChat,
          () => stream,
          () => (left = true),
        );
        delivery.join(response);
        await delivery.answered(response);
        delivery.take({ id: 'c', choices: [{ index: 0, delta: { content: 'x' } }] }, false);
        await delivery.flush(AbortSignal.timeout(5_000));
        expect({ left, awaited: delivery.awaited }).to.deep.equal({ left: true, awaited: false });
        delivery.fail(new PolarError('CANCELLED', 'the harness left'));
        sendError(response, new PolarError('CANCELLED', 'the harness left'), openaiChat);
        expect(response.headersSent).to.equal(false);
      } finally {
        server.close();
      }
    });
  }
});

describe('a reply that several wait for', () => {
  it('goes on at the pace of the fastest, and reaches the others whole', async () => {
    const asked = openaiChat.read(ASKED, TARGET);
    const delivery = new Delivery(
      openaiChat,
      () => asked.writer('m').stream(),
      () => {},
    );
    const joined = Promise.withResolvers<void>();
    let requests = 0;
    const server = createServer((_, response) => {
      delivery.join(response);
      if (++requests === 2) joined.resolve();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const answers = ['slow', 'fast'].map((path) =>
      once(request({ port, path: `/${path}` }).end(), 'response'),
    );
    const signal = AbortSignal.timeout(5_000);
    const send = async (): Promise<void> => {
      await joined.promise;
      for (let i = 0; i < PIECES; i++) {
        delivery.take({ id: 'c', choices: [{ index: 0, delta: { content: PIECE } }] }, false);
        await delivery.flush(signal);
      }
      delivery.end();
    };
    try {
      const sent = send();
      const [slow, fast] = (await Promise.all(answers)).map(([answer]) => answer);
      const [told] = await Promise.all([text(fast), sent]);
      expect(told).to.include('[DONE]');
      expect((await text(slow)).length).to.equal(told.length);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
