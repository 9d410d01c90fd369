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

  it('sends what any client reads, whichever version of HTTP it speaks and in whatever order it asks', async () => {
    const server = createServer(async (_, response) => {
      using relay = new EventRelay(response, writer);
      for (const text of ['é', '', 'b'.repeat(70_000)]) {
        if (text !== '') await relay.send(text, never);
        await sleep(5);
      }
      relay.end('c');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const all = async (request: string): Promise<string> => {
      const socket = connect(port, '127.0.0.1').setEncoding('utf8');
      socket.write(request);
      let text = '';
      for await (const piece of socket) text += piece;
      return text.replaceAll(/HTTP\/1.1 200[\s\S]*?\r\n\r\n/g, '<').replaceAll(/b{9,}/g, 'B');
    };
    const last = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    const chunked = '<2\r\né\r\n11170\r\nB\r\n1\r\nc\r\n0\r\n\r\n';
    expect(await all(last)).to.equal(chunked);
    expect(await all(`GET / HTTP/1.1\r\nhost: x\r\n\r\n${last}`)).to.equal(chunked + chunked);
    expect(await all('GET / HTTP/1.0\r\n\r\n')).to.equal('<éBc');
    server.close();
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
