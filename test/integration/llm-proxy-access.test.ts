// Who gets in at the llm-proxy and who does not, and what the paths are.
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { newSecret } from '../../services/common/ids.ts';
import { CAPABILITY_CATCH_UP_MS, PROXY_BODY_BYTES_MAX } from '../../services/common/limits.ts';
import { REQUESTS_PER_SESSION_MAX } from '../../services/llm-proxy/attempts/attempts.ts';
import { eventually } from '../support/eventually.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, WireEngine } from '../support/wire-engine.ts';

const ASKED = { model: 'alias', messages: [{ role: 'user', content: 'x' }] };

interface ErrorAnswer {
  error: { message: string; type: string; param: string | null; code: string };
}

describe('llm-proxy access', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  before(async () => {
    engine = await WireEngine.start('vllm');
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
  });
  beforeEach(() => {
    engine.behaviour = plainBehaviour();
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const post = (
    path: string,
    headers: Record<string, string> = {},
    body: string | Uint8Array<ArrayBuffer> = JSON.stringify(ASKED),
  ) => fetch(proxy.url + path, { method: 'POST', headers, body });
  const errorOf = async (answer: Response): Promise<ErrorAnswer['error']> =>
    ((await answer.json()) as ErrorAnswer).error;

  it('holds a capability of a run that goes on, when the clock is set or the machine slept for days', async () => {
    const secret = await proxy.admit('slept-0');
    expect((await post(`/s/${secret}/v1/chat/completions`)).status).to.equal(200);
    const { now } = Date;
    Date.now = () => now() + 3 * 86_400_000;
    try {
      await sleep(CAPABILITY_CATCH_UP_MS * 1.5);
      expect((await post(`/s/${secret}/v1/chat/completions`)).status).to.equal(200);
    } finally {
      Date.now = now;
    }
  });

  it('is reached under every base URL that harnesses make, and by API key', async () => {
    const secret = await proxy.admit('paths-0');
    const paths = [
      `/s/${secret}/v1/chat/completions`,
      `/s/${secret}/chat/completions`,
      `/s/${secret}/v1/v1/chat/completions`,
      `/s/${secret}/v1/chat/completions?beta=true`,
    ];
    for (const path of paths) expect((await post(path)).status, path).to.equal(200);
    const keys = [{ authorization: `Bearer ${secret}` }, { 'x-api-key': secret }];
    for (const headers of keys) expect((await post('/v1/chat/completions', headers)).status).to.equal(200);
    expect(await proxy.records('paths-0')).to.have.length(6);
  });

  it('answers 401 in the form of the dialect to whoever has no capability, on every path', async () => {
    const before = engine.bodies.length;
    const paths = [
      '/v1/chat/completions',
      `/s/${newSecret()}/v1/chat/completions`,
      '/s//v1/models',
      '/',
      '/nothing',
    ];
    for (const path of paths) {
      const answer = await post(path, { authorization: 'Bearer dummy' });
      expect(answer.status, path).to.equal(401);
      const error = await errorOf(answer);
      expect(error).to.include({ type: 'authentication_error', code: 'invalid_api_key', param: null });
    }
    expect(engine.bodies.length).to.equal(before);
  });

  it('lets nobody in with a digest or with an expired capability', async () => {
    const secret = await proxy.admit('old-0', 1, { expireMs: BigInt(Date.now() - 1) });
    expect((await proxy.chat(secret, ASKED)).status).to.equal(401);
    const expiresAt = Date.now() + 3_000;
    const ending = await proxy.admit('ending-0', 1, { expireMs: BigInt(expiresAt) });
    expect((await proxy.chat(ending, ASKED)).status).to.equal(200);
    await sleep(expiresAt + 1 - Date.now());
    expect((await proxy.chat(ending, ASKED)).status).to.equal(401);
  });

  it('knows a capability at once, and a revoked one no more', async () => {
    for (let i = 0; i < 5; i++) {
      const secret = await proxy.admit(`quick-${i}`);
      expect((await proxy.chat(secret, ASKED)).status).to.equal(200);
      await proxy.revoke(`quick-${i}`);
      const status = async (): Promise<number> => (await proxy.chat(secret, ASKED)).status;
      await eventually('it is not known any more', async () => (await status()) === 401);
    }
  });

  it('aborts the calls in flight of a revoked capability, and records what was sampled', async () => {
    const secret = await proxy.admit('fenced-0');
    engine.behaviour.reply = () => ({ content: 'long '.repeat(100) });
    engine.behaviour.delayMs = 20;
    const answer = await proxy.chat(secret, { ...ASKED, stream: true });
    const reader = answer.body!.getReader();
    await reader.read();
    await reader.read();
    await proxy.revoke('fenced-0');
    const rest = async (): Promise<string> => ((await reader.read()).done ? 'whole' : await rest());
    expect(await rest().catch(() => 'cut')).to.equal('cut');
    await eventually('it is recorded', async () => (await proxy.records('fenced-0')).length > 0);
    const [record] = await proxy.records('fenced-0');
    expect(record).to.include({ finishReason: 'cancelled', replyDigest: '', errorReason: '' });
    expect(record!.sampledIds.length).to.be.greaterThan(0);
  });

  it('does not open an attempt again for a body that was still coming when its capability was revoked', async () => {
    const secret = await proxy.admit('slow-0');
    const body = Buffer.from(JSON.stringify(ASKED));
    const asked = request(`${proxy.url}/s/${secret}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-length': body.length },
    });
    asked.write(body.subarray(0, 20));
    await (await proxy.chat(secret, ASKED)).text();
    await proxy.revoke('slow-0');
    await eventually('it is known', async () => (await proxy.chat(secret, ASKED)).status === 401);
    asked.end(body.subarray(20));
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).to.equal(401);
    expect(await proxy.records('slow-0')).to.have.length(1);
  });

  it('has no more requests of one session at once than its share, whatever they are', async () => {
    const [greedy, modest] = [await proxy.admit('greedy-0'), await proxy.admit('modest-0')];
    // None of these ends by itself, and they are one more than its share: when one is refused, all others are in.
    const slow = Array.from({ length: REQUESTS_PER_SESSION_MAX + 1 }, () => {
      const asked = request(`${proxy.url}/s/${greedy}/v1/messages`, { method: 'POST', agent: false });
      asked.on('error', () => {}).write('{');
      return asked;
    });
    const refused = await Promise.race(slow.map((asked) => once(asked, 'response')));
    expect((refused as [IncomingMessage])[0].resume().statusCode).to.equal(429);
    const answer = await post(`/s/${greedy}/v1/messages/count_tokens`);
    expect({ status: answer.status, after: answer.headers.get('retry-after') }).to.deep.equal({
      status: 429,
      after: '1',
    });
    expect(await answer.json()).to.have.nested.property('error.type', 'rate_limit_error');
    expect((await proxy.chat(modest, ASKED)).status).to.equal(200);
    for (const asked of slow) asked.destroy();
    await eventually('it is free again', async () => (await proxy.chat(greedy, ASKED)).status === 200);
  });

  it('tells the models under the name that the harness knows', async () => {
    const secret = await proxy.admit('models-0');
    const get = (path: string) => fetch(`${proxy.url}/s/${secret}${path}`);
    const list = (await (await get('/v1/models')).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).to.deep.equal(['policy']);
    expect((await get('/')).status).to.equal(200);
    expect((await fetch(`${proxy.url}/s/${secret}/`, { method: 'HEAD' })).status).to.equal(200);
  });

  it('tells of one model under the name that is asked for, as calls are answered', async () => {
    const secret = await proxy.admit('model-0');
    const get = (path: string) => fetch(`${proxy.url}/s/${secret}${path}`);
    const asked = await proxy.chat(secret, { ...ASKED, model: 'gpt-4o' });
    expect(await asked.json()).to.include({ model: 'gpt-4o' });
    for (const name of ['policy', 'gpt-4o']) {
      expect(await (await get(`/v1/models/${name}`)).json()).to.include({ id: name });
    }
    // LlamaIndex asks for it as soon as it is given a name, and takes no other answer.
    const google = await get('/v1beta/models/gemini-2.5-pro');
    expect(await google.json()).to.include({ name: 'models/gemini-2.5-pro' });
  });

  it('answers unknown paths, methods and WebSocket upgrades in the form of the dialect', async () => {
    const secret = await proxy.admit('unknown-0');
    const answer = await post(`/s/${secret}/v1/embeddings`);
    expect(answer.status).to.equal(404);
    expect(await errorOf(answer)).to.include({ code: 'not_found' });
    expect((await fetch(`${proxy.url}/s/${secret}/v1/chat/completions`)).status).to.equal(405);
    const status = await new Promise((resolve, reject) => {
      const headers = { connection: 'upgrade', upgrade: 'websocket' };
      const asked = request(`${proxy.url}/s/${secret}/v1/responses`, { headers }, (answered) => {
        answered.resume();
        resolve(answered.statusCode);
      });
      asked.on('error', reject).end();
    });
    expect(status).to.equal(426);
  });

  it('names the field that is wrong', async () => {
    const secret = await proxy.admit('bad-0');
    const path = `/s/${secret}/v1/chat/completions`;
    const cases: [string, string][] = [
      ['{"messages":', '(body)'],
      ['[]', '(body)'],
      ['{}', 'messages'],
      ['{"messages":[]}', 'messages'],
      ['{"messages":[{"role":"user","content":"x"},{"content":"x"}]}', 'messages[1].role'],
      ['{"messages":[7]}', 'messages[0]'],
      ['{"messages":[{"role":"user","content":"x"}],"stream":"yes"}', 'stream'],
      ['{"messages":[{"role":"user","content":"x"}],"tools":{}}', 'tools'],
      ['{"messages":[{"role":"user","content":"x"}],"n":1.5}', 'n'],
      ['{"messages":[{"role":"user","content":"x"}],"model":7}', 'model'],
    ];
    for (const [body, param] of cases) {
      const answer = await post(path, {}, body);
      expect(answer.status, body).to.equal(400);
      expect(await errorOf(answer), body).to.include({ param, type: 'invalid_request_error' });
    }
  });

  it('takes compressed bodies, and refuses what it cannot read', async () => {
    const secret = await proxy.admit('packed-0');
    const path = `/s/${secret}/v1/chat/completions`;
    const body = Buffer.from(JSON.stringify(ASKED));
    expect((await post(path, { 'content-encoding': 'gzip' }, gzipSync(body))).status).to.equal(200);
    expect((await post(path, { 'content-encoding': 'zstd' }, zstdCompressSync(body))).status).to.equal(200);
    expect((await post(path, { 'content-encoding': 'gzip' }, body)).status).to.equal(400);
    expect((await post(path, { 'content-encoding': 'lzma' }, body)).status).to.equal(400);
    const bomb = gzipSync(Buffer.alloc(PROXY_BODY_BYTES_MAX + 1, ' '));
    expect((await post(path, { 'content-encoding': 'gzip' }, bomb)).status).to.equal(413);
  });

  it('refuses a body above its limit with 413', async () => {
    const secret = await proxy.admit('large-0');
    const body = Buffer.alloc(PROXY_BODY_BYTES_MAX + 1, ' ');
    const answer = await post(`/s/${secret}/v1/chat/completions`, {}, body);
    expect(answer.status).to.equal(413);
    expect(await errorOf(answer)).to.include({ code: 'body_too_large' });
  });

  it('takes no call of a closed session, and says the same count again', async () => {
    const secret = await proxy.admit('closed-0');
    await (await proxy.chat(secret, ASKED)).text();
    await (await proxy.chat(secret, ASKED)).text();
    const key = { sessionId: 'closed-0', attempt: 1 };
    const closed = await proxy.client.closeSession(key);
    expect(closed.calls).to.equal(2);
    expect(closed.firstSeq > 0n && closed.lastSeq > closed.firstSeq).to.equal(true);
    expect(closed.lastFailure).to.equal(undefined);
    const answer = await proxy.chat(secret, ASKED);
    expect(answer.status).to.equal(410);
    expect(await errorOf(answer)).to.include({ code: 'session_closed' });
    const again = await proxy.client.closeSession(key);
    expect({ ...again }).to.deep.equal({ ...closed });
    expect(await proxy.records('closed-0')).to.have.length(2);
  });

  it('closes a session that never called, and refuses one without a name', async () => {
    const closed = await proxy.client.closeSession({ sessionId: 'quiet-0', attempt: 1 });
    expect(closed).to.include({ calls: 0, firstSeq: 0n, lastSeq: 0n });
    const refused = await proxy.client.closeSession({ sessionId: '', attempt: 0 }).catch((error) => error);
    expect(refused.reason).to.equal('INVALID_REQUEST');
    expect(refused.fields.map(({ field }: { field: string }) => field)).to.deep.equal([
      'session_id',
      'attempt',
    ]);
  });

  it('keeps the attempts of a session apart', async () => {
    const first = await proxy.admit('twice-0', 1);
    const second = await proxy.admit('twice-0', 2);
    await (await proxy.chat(first, ASKED)).text();
    await (await proxy.chat(second, ASKED)).text();
    await proxy.client.closeSession({ sessionId: 'twice-0', attempt: 1 });
    expect((await proxy.chat(second, ASKED)).status).to.equal(200);
    expect(await proxy.records('twice-0', 1)).to.have.length(1);
    expect((await proxy.records('twice-0', 2)).map(({ index }) => index)).to.deep.equal([0, 1]);
  });
});
