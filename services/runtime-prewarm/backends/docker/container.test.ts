// What a real engine does by chance only: delete a container by itself in the moment in which it is asked to.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../../../test/support/eventually.ts';
import { containerRemoved } from './container.ts';
import { Engine } from './engine.ts';

describe('a container that its engine is deleting already', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
  const engine = new Engine(join(folder, 'engine.sock'));
  let waiting: ServerResponse | undefined;
  const server = createServer((request, response) => {
    if (request.method === 'DELETE') response.writeHead(409).end('{"message": "already in progress"}');
    else if (request.url === '/containers/c/wait?condition=removed') waiting = response;
    else response.writeHead(400).end();
  });
  before(() => once(server.listen(engine.socketPath), 'listening'));
  after(() => {
    engine.close();
    server.close();
    rmSync(folder, { recursive: true });
  });

  for (const [how, status] of [
    ['is gone', 200],
    ['was gone before that is asked', 404],
  ] as const) {
    it(`is removed when it ${how}`, async () => {
      waiting = undefined;
      let isRemoved = false;
      const removal = containerRemoved(engine, 'c').then(() => (isRemoved = true));
      await eventually('its end is waited for', () => waiting !== undefined);
      expect(isRemoved).to.equal(false);
      (waiting as ServerResponse | undefined)?.writeHead(status).end('{}');
      await removal;
    });
  }
});
