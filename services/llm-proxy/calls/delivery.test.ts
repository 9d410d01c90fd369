import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { openaiChat } from '../dialects/openai-chat/dialect.ts';
import { Delivery } from './delivery.ts';

/** More than the kernel and Node keep for a client that does not read. */
const [PIECES, PIECE] = [160, 'x'.repeat(128 * 1024)];

describe('a reply that several wait for', () => {
  it('goes on at the pace of the fastest, and reaches the others whole', async () => {
    const asked = openaiChat.read(
      { messages: [{ role: 'user', content: 'x' }] },
      { kind: 'generate', dialect: 'openai-chat' },
    );
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
