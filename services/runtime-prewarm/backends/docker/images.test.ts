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
  it('are asked for no longer than a call may take, however long the preparation may', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
    const engine = new Engine(join(folder, 'engine.sock'), 200);
    const server = createServer(() => {});
    await once(server.listen(engine.socketPath), 'listening');
    try {
      const images = dockerImages(engine, docker, false, new PulledImages(join(folder, 'images')));
      const error = await images.find('a', new AbortController().signal).catch((thrown) => thrown);
      expect(error).to.include({
        message: 'the engine did not answer GET /images/a/json within 200 ms',
      });
    } finally {
      engine.close();
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true });
    }
  });
});
