import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { sleep } from '../../common/clock.ts';
import { chatWriter } from '../dialects/openai-chat/reply.ts';
import { cut } from './answer.ts';
import { EventRelay } from './event-relay.ts';

/** What a client gets of a reply that `play` sends. */
async function received(play: (response: ServerResponse) => Promise<void>): Promise<string> {
  const server = createServer((_, response) => void play(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  try {
    return await (await fetch(`http://127.0.0.1:${port}/`)).text();
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const writer = chatWriter({ logprobs: false, usage: false }, 'm').stream();
const never = new AbortController().signal;

describe('event relay', () => {
  it('keeps a silent connection with comments, before the first event and after it', async () => {
    const text = await received(async (response) => {
      using relay = new EventRelay(response, writer, 40);
      await sleep(100);
      await relay.send('data: {"n":1}\n\n', never);
      await sleep(60);
      relay.end(`data: {"n":2}\n\n${writer.end()}`);
    });
    expect(text).to.match(
      /^(: keep-alive\n\n)+data: {"n":1}\n\n(: keep-alive\n\n)+data: {"n":2}\n\ndata: \[DONE\]\n\n$/,
    );
  });

  it('waits for a harness that does not read, and for no longer than the call lasts', async () => {
    const stop = new AbortController();
    const failed = Promise.withResolvers<Error>();
    const server = createServer(async (_, response) => {
      using relay = new EventRelay(response, writer);
      setTimeout(() => stop.abort(new Error('over')), 100);
      await relay.send('x'.repeat(16 * 1024 * 1024), stop.signal)?.catch(failed.resolve);
      cut(response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const harness = connect(port, '127.0.0.1').pause();
    harness.on('error', () => {});
    harness.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    expect((await failed.promise).message).to.equal('over');
    harness.destroy();
    server.close();
    server.closeAllConnections();
  });
});
