import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { queryObjects } from 'node:v8';
import { expect } from 'chai';
import { itLong } from '../../../../test/support/long.ts';
import { Engine, EngineError } from './engine.ts';

const CALLS = 40;
/** That an engine is asked over at once. */
const CONNECTIONS = 64;

/** What it is rejected with. */
const rejection = (call: Promise<unknown>): Promise<Error> =>
  call.then(
    () => new Error('it was answered'),
    (error: Error) => error,
  );

function* endless(): Generator<string> {
  for (const piece = 'x'.repeat(1 << 20); ; ) yield piece;
}

describe('calls to a container engine', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
  let server: Server;
  let engine: Engine;
  let broken = 0;
  /** Connections that were kept; what came to '/ended'. */
  const known = new WeakSet<object>();
  const asked: string[] = [];

  before(async () => {
    // Counting what is held stops a large process for seconds, in which a kept connection must not end.
    server = createServer({ keepAliveTimeout: 300_000 }, (request, response) => {
      const { pathname } = new URL(request.url ?? '', 'http://engine');
      if (pathname === '/silent') return;
      if (pathname === '/ended') {
        asked.push(request.method ?? '');
        if (known.has(request.socket)) {
          request.socket.destroy();
          return;
        }
      }
      known.add(request.socket);
      if (pathname === '/cut') {
        response.writeHead(200, { 'content-length': 100 }).write('{"half":');
        setTimeout(() => response.destroy(), 20);
        return;
      }
      if (pathname === '/endless') return void Readable.from(endless()).pipe(response);
      const is = pathname === '/there' || pathname === '/ended';
      response.writeHead(is ? 200 : 404).end(JSON.stringify(is ? { Id: 'a\u00e9' } : { message: 'no such' }));
    });
    await new Promise<void>((resolve) => server.listen(join(folder, 'engine.sock'), resolve));
    engine = new Engine(join(folder, 'engine.sock'));
    engine.onBroken = () => broken++;
  });
  after(() => {
    engine.close();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  // To count what is alive takes seconds in a process that has loaded much.
  itLong('hold nothing once they are answered', async () => {
    await engine.call('GET', '/there');
    const signals = (): number => queryObjects(AbortSignal, { format: 'count' });
    const before = signals();
    const { signal } = new AbortController();
    for (let i = 0; i < CALLS; i++) {
      expect(await engine.call('GET', '/there', { signal })).to.deep.equal({ Id: 'a\u00e9' });
    }
    expect(signals() - before).to.be.lessThan(CALLS / 4);
  });

  it('are asked again, over a fresh connection, where a kept one ends in that moment, once, and if that does no harm', async () => {
    for (const method of ['GET', 'DELETE']) {
      await engine.call('GET', '/there');
      expect(await engine.call(method, '/ended')).to.deep.equal({ Id: 'a\u00e9' });
      expect(asked.splice(0)).to.deep.equal([method, method]);
    }
    expect(broken).to.equal(0);
    await engine.call('GET', '/there');
    await rejection(engine.call('POST', '/ended'));
    expect([asked.splice(0), broken]).to.deep.equal([['POST'], 1]);
    broken = 0;
    await engine.call('GET', '/there');
    await engine.call('POST', '/ended', { body: { a: 1 }, repeatable: true });
    expect([asked.splice(0), broken]).to.deep.equal([['POST', 'POST'], 0]);
  });

  it('end with what the engine says, with their limit, with their caller, or with the connection', async () => {
    const missing = await rejection(engine.call('GET', '/missing'));
    expect(missing).to.be.instanceOf(EngineError).with.property('status', 404);
    const late = await rejection(engine.call('GET', '/silent', { limitMs: 30 }));
    expect(late.message).to.equal('the engine did not answer GET /silent within 30 ms');
    const why = new Error('left');
    const caller = new AbortController();
    const left = rejection(engine.call('GET', '/silent', { signal: caller.signal }));
    caller.abort(why);
    expect(await left).to.equal(why);
    expect(await rejection(engine.call('GET', '/there', { signal: caller.signal }))).to.equal(why);
    expect(broken).to.equal(0);
    await rejection(engine.call('GET', '/cut'));
    expect(broken).to.equal(1);
  });

  it('wait for no long ones, as fetches of images are, and for others no longer than their limit', async () => {
    const busy = new Engine(join(folder, 'engine.sock'));
    const silent = (limitMs?: number): Promise<Error> =>
      rejection(busy.call('GET', '/silent', limitMs === undefined ? {} : { limitMs }));
    const long = Array.from({ length: 2 * CONNECTIONS }, () => silent(1_800_000));
    expect(await busy.call('GET', '/there')).to.deep.equal({ Id: 'a\u00e9' });
    const quick = Array.from({ length: CONNECTIONS }, () => silent());
    const late = await silent(30);
    expect(late.message).to.equal('the engine did not answer GET /silent within 30 ms');
    busy.close();
    await Promise.all([...long.slice(0, CONNECTIONS), ...quick]);
  });

  it('end where the answer does not', async () => {
    expect(await rejection(engine.call('GET', '/endless'))).to.include({
      message: 'the engine answers with too much',
    });
  });
});
