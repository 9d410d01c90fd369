import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { Bytes } from '../domain/bytes.ts';
import { engineText } from '../domain/engine-text.ts';
import { KnownBodies } from '../domain/known-bodies.ts';
import { giveBack, parseBody, parseConversation, readBody } from './body.ts';

/** What `take` makes of the requests that these bodies are sent with. */
async function taken<T>(
  bodies: readonly Buffer[],
  take: (request: IncomingMessage) => Promise<T>,
  headers: Record<string, string> = {},
): Promise<T[]> {
  const results: Promise<T>[] = [];
  const server = createServer((request, response) => {
    const result = take(request);
    results.push(result);
    void result.finally(() => response.end()).catch(() => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  try {
    for (const body of bodies) {
      await (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers })).text();
    }
    return await Promise.all(results);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const conversation = (turns: number): string =>
  JSON.stringify({
    messages: Array.from({ length: turns }, (_, i) => ({ role: 'user', content: `${i}é`.repeat(30_000) })),
    model: 'm',
  });

describe('a request body', () => {
  it('is read in the pieces that it comes in, packed or not', async () => {
    const text = conversation(12);
    const [plain] = await taken([Buffer.from(text)], async (request) => parseBody(await readBody(request)));
    expect(plain).to.deep.equal(JSON.parse(text));
    const packed = gzipSync(text);
    const [unpacked] = await taken([packed], async (request) => parseBody(await readBody(request)), {
      'content-encoding': 'gzip',
    });
    expect(unpacked).to.deep.equal(JSON.parse(text));
  });

  it('gives its memory back when it is parsed, and is kept whole for the engine', async () => {
    const bodies = new KnownBodies();
    const attempt = {};
    const texts = [8, 12].map(conversation);
    const read = await taken(
      texts.map((text) => Buffer.from(text)),
      async (request) => {
        const came = await readBody(request);
        const { pieces } = came;
        const { value, read } = parseConversation(bodies, attempt, came, 'messages');
        bodies.keep(attempt, read, 1);
        return { value, source: read.body.source, left: pieces.reduce((sum, { length }) => sum + length, 0) };
      },
    );
    for (const [i, { value, source, left }] of read.entries()) {
      const text = texts[i] as string;
      // Pieces that are small, or views of memory that is not theirs alone.
      expect(left).to.be.below(text.length / 4);
      expect(value).to.deep.equal(JSON.parse(text));
      const sent = Buffer.concat(engineText(value, source)).toString();
      expect(sent).to.equal(text);
    }
    expect(read[1]?.source?.elements[6]).to.equal(read[0]?.source?.elements[6]);
  });

  it('is read against those before it, whose memory stays: unchanged, grown, edited in place, cut', async () => {
    const bodies = new KnownBodies();
    const attempt = {};
    const [first = '', ...others] = [6, 6, 9, 9, 4].map(conversation);
    // One of the same length with other bytes amid them.
    const edited = others[1]?.replace('2é2é', '2é3é') ?? '';
    const texts = [first, others[0] ?? '', edited, others[2] ?? '', others[3] ?? '', first];
    const read = await taken(
      texts.map((text) => Buffer.from(text)),
      async (request) => {
        const came = await readBody(request, bodies.of(attempt));
        const { value, read } = parseConversation(bodies, attempt, came, 'messages');
        bodies.keep(attempt, read, 1);
        return { value, read };
      },
    );
    for (const [i, { value, read: one }] of read.entries()) {
      expect(value).to.deep.equal(JSON.parse(texts[i] as string));
      expect(one.body.bytes.text(), `body ${i}`).to.equal(texts[i]);
    }
  });

  it('is none where its client leaves before its end, over HTTP/2 too', async () => {
    const read = Promise.withResolvers<unknown>();
    const server = createHttp2Server((request) => {
      request.on('error', () => {});
      request.once('data', () => session.destroy());
      readBody(request as unknown as IncomingMessage).then(read.resolve, read.reject);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const sent = session.on('error', () => {}).request({ ':method': 'POST', ':path': '/' });
    sent.on('error', () => {}).write('{"messages":[]}');
    try {
      expect(await read.promise.catch(({ reason }) => reason)).to.equal('CANCELLED');
    } finally {
      server.close();
    }
  });

  it('gives back no memory that others look at', () => {
    const shared = Buffer.alloc(64 * 1024, 'a');
    giveBack(new Bytes([shared.subarray(0, 32 * 1024)]));
    expect(shared.toString('utf8', 0, 3)).to.equal('aaa');
    giveBack(new Bytes([shared]));
    expect(shared.length).to.equal(0);
  });
});
