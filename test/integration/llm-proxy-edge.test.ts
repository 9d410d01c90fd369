// The llm-proxy's HTTP edge: what clients, their libraries and their mistakes send over a connection.
import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect } from 'chai';
import { TestProxy } from '../support/llm-proxy.ts';
import { WireEngine } from '../support/wire-engine.ts';

const BODY = JSON.stringify({ messages: [{ role: 'user', content: 'hé' }] });
const GENERATE = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'x' }] }] });
const GZIP_BOMB_BYTES = 200 * 1024 * 1024;

describe('llm-proxy before clients of any kind', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  let capability: string;
  before(async () => {
    engine = await WireEngine.start('vllm');
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
    capability = await proxy.admit('edge-0');
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const key = () => ({ authorization: `Bearer ${capability}` });
  const send = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${proxy.url}${path}`, init);
    const text = await answer.text();
    return {
      status: answer.status,
      headers: answer.headers,
      body: text === '' ? undefined : JSON.parse(text),
    };
  };
  const post = (path: string, body: string | Buffer, headers: object = key()) =>
    send(path, { method: 'POST', body: body as string, headers: { ...headers } });

  /** All that comes back on one connection, which the last of the requests has closed. */
  const raw = async (...requests: string[]): Promise<string> => {
    const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1').setEncoding('utf8');
    let text = '';
    socket.on('data', (piece) => (text += piece));
    for (const request of requests) socket.write(request);
    await once(socket, 'close');
    return text;
  };
  const request = (body: string, more = '') =>
    `POST /s/${capability}/v1/chat/completions HTTP/1.1\r\nhost: x\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;
  const LAST = 'connection: close\r\n';
  const statuses = (text: string) =>
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

  it('reads bodies that are packed, however that is written', async () => {
    const packed: [string, Buffer][] = [
      ['gzip', gzipSync(BODY)],
      ['x-gzip', gzipSync(BODY)],
      ['GZIP', gzipSync(BODY)],
      ['deflate', deflateSync(BODY)],
      ['br', brotliCompressSync(BODY)],
      ['zstd', zstdCompressSync(BODY)],
      ['gzip, zstd', zstdCompressSync(gzipSync(BODY))],
      ['identity', Buffer.from(BODY)],
    ];
    for (const [encoding, body] of packed) {
      const { status } = await post('/v1/chat/completions', body, { ...key(), 'content-encoding': encoding });
      expect(status, encoding).to.equal(200);
    }
  });

  it('refuses bodies that are packed otherwise, not at all, or to burst', async () => {
    const bomb = gzipSync(Buffer.alloc(GZIP_BOMB_BYTES));
    const refused: [string, Buffer, number][] = [
      ['gzip', Buffer.from(BODY), 400],
      ['zstd', zstdCompressSync(BODY).subarray(0, 20), 400],
      ['compress', Buffer.from(BODY), 400],
      ['gzip, gzip, gzip', gzipSync(gzipSync(gzipSync(BODY))), 400],
      ['gzip', bomb, 413],
      ['gzip, gzip', gzipSync(bomb), 413],
    ];
    for (const [encoding, body, expected] of refused) {
      const { status } = await post('/v1/chat/completions', body, { ...key(), 'content-encoding': encoding });
      expect(status, encoding).to.equal(expected);
    }
  });

  it('refuses a large body of more JSON values than it may have, and counts none within strings', async () => {
    const messages = (content: string) => JSON.stringify([{ role: 'user', content }]);
    const many = `{"messages":${messages('x')},"metadata":[${'{"a":{}},'.repeat(300_000)}1]}`;
    const refused = await post('/v1/chat/completions', many);
    expect(refused.status).to.equal(413);
    expect(refused.body.error.message).to.include('500000');
    const text = '{"a\\":[1],'.repeat(300_000);
    expect((await post('/v1/chat/completions', `{"messages":${messages(text)}}`)).status).to.equal(200);
  });

  it('takes a body in chunks, one that waits for leave, and requests one behind another, faulty ones among them', async () => {
    const size = Buffer.byteLength(BODY).toString(16);
    const chunked = request('', LAST).replace('content-length: 0', 'transfer-encoding: chunked');
    expect(statuses(await raw(`${chunked}${size}\r\n${BODY}\r\n0\r\n\r\n`))).to.deep.equal([200]);
    expect(statuses(await raw(request(BODY, `${LAST}expect: 100-continue\r\n`)))).to.deep.equal([100, 200]);
    const stream = BODY.replace('{', '{"stream":true,');
    const all = [request('{bad'), request(BODY), request(stream), request('[]'), request(stream, LAST)];
    const text = await raw(all.join(''));
    expect(statuses(text)).to.deep.equal([400, 200, 200, 400, 200]);
    expect(text.split('[DONE]')).to.have.length(3);
  });

  it('answers what is no HTTP, too much of it, or in two lengths at once, and ends the connection', async () => {
    const faulty: [string, number][] = [
      ['hello\r\n\r\n', 400],
      [request(BODY, `x: ${'y'.repeat(20_000)}\r\n`), 431],
      [request(BODY, 'content-length: 3\r\n'), 400],
      [request(BODY, 'transfer-encoding: chunked\r\n'), 400],
      [request(BODY).replace('host: x\r\n', ''), 400],
    ];
    for (const [text, status] of faulty) expect(statuses(await raw(text)), text).to.deep.equal([status]);
    expect((await post('/v1/chat/completions', BODY)).status).to.equal(200);
  });

  it('finds what is meant behind doubled slashes, escapes, whole addresses, and keys in any place', async () => {
    const chat = [
      '/v1//chat/completions',
      '//v1/chat/completions/',
      '/v1/chat%2fcompletions',
      '/v1/v1/chat/completions',
    ];
    for (const path of chat) expect((await post(path, BODY)).status, path).to.equal(200);
    const proxied = request(BODY, LAST).replace('POST ', 'POST http://llm.example:8080');
    expect(statuses(await raw(proxied))).to.deep.equal([200]);
    const google = '/v1beta/models/policy:generateContent';
    const keys: [string, Record<string, string>][] = [
      [`${google}?key=${capability}`, {}],
      [google, { 'X-Goog-Api-Key': capability }],
      [google.replace(':', '%3A'), { AUTHORIZATION: `BEARER ${capability}` }],
      [google.replace('beta', 'alpha'), { 'x-api-key': capability }],
    ];
    for (const [path, headers] of keys)
      expect((await post(path, GENERATE, headers)).status, path).to.equal(200);
  });

  it('says what it offers in place of another method, and why it has nothing at a path', async () => {
    const wrong = await send('/v1/chat/completions', { method: 'OPTIONS', headers: key() });
    expect({ status: wrong.status, allow: wrong.headers.get('allow') }).to.deep.equal({
      status: 405,
      allow: 'POST',
    });
    const paths: [string, string, RegExp][] = [
      ['GET', '/v1/responses/resp_1', /send the whole conversation/],
      ['DELETE', '/v1/responses/resp_1', /send the whole conversation/],
      ['POST', '/v1/responses/compact', /compaction is the harness’s own/],
      ['POST', '/v1/embeddings', /only text is generated/],
      ['POST', '/v1/messages/batches', /each request by itself/],
      ['POST', '/v1beta/models/policy:embedContent', /only text is generated/],
      ['POST', '/v1beta/cachedContents', /cached by the provider/],
      ['GET', '/v1/nothing', /README/],
    ];
    for (const [method, path, words] of paths) {
      const { status, body } = await send(path, { method, headers: key() });
      expect(status, path).to.equal(404);
      expect(body.error.message, path).to.match(words);
    }
    const { body } = await send('/v1/messages/batches', { method: 'POST', headers: key() });
    expect(body).to.have.nested.property('error.type', 'not_found_error');
  });
});
