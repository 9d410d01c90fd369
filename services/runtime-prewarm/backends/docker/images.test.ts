// What a real engine cannot be brought to do at will: never answer.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { docker } from './dialect.ts';
import { Engine } from './engine.ts';
import { dockerImages } from './images.ts';
import { PulledImages } from './pulled.ts';

describe('images of an engine that stands still', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
  const engine = new Engine(join(folder, 'engine.sock'), 200);
  const pulled = new PulledImages(join(folder, 'images'));
  const images = dockerImages(engine, docker, false, pulled);
  const server = createServer(() => {});
  before(async () => {
    await once(server.listen(engine.socketPath), 'listening');
  });
  after(() => {
    engine.close();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  it('are asked for no longer than a call may take, however long the preparation may', async () => {
    const error = await images.find('a', new AbortController().signal).catch((thrown) => thrown);
    expect(error).to.include({
      message: 'the engine did not answer GET /images/a/json within 200 ms',
    });
  });

  it('are waited for no longer than the caller does while it removes one', async () => {
    const removal = Promise.withResolvers<void>();
    const removing = pulled.removing(() => removal.promise);
    const why = new Error('cancelled');
    const caller = new AbortController();
    const found = images.find('a', caller.signal).catch((thrown) => thrown);
    caller.abort(why);
    expect(await found).to.equal(why);
    removal.resolve();
    await removing;
  });
});
