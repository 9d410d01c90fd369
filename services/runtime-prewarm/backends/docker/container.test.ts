// What a real engine does by chance only: delete a container by itself in the moment in which it is asked to.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../../../test/support/eventually.ts';
import { containerRemoved, createdContainer } from './container.ts';
import { Engine, EngineError } from './engine.ts';

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

describe('a container whose engine ends a kept connection as it is made', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
  const engine = new Engine(join(folder, 'engine.sock'));
  /** Ids by name. */
  const made = new Map<string, string>();
  const asked: string[] = [];
  /** Done in the place of an answer to a create over a connection that was kept. */
  let end: (name: string) => void;
  const known = new WeakSet<object>();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://engine');
    asked.push(`${request.method} ${pathname}`);
    const [wasKept, name] = [known.has(request.socket), searchParams.get('name') ?? ''];
    known.add(request.socket);
    const id = made.get('named');
    if (pathname === '/containers/named/json') {
      response.writeHead(id === '' ? 404 : 200).end(`{"Id": "${id}", "message": "no such container"}`);
    } else if (pathname !== '/containers/create') response.end('{}');
    else if (wasKept) {
      end(name);
      request.socket.destroy();
    } else if (made.has(name)) response.writeHead(409).end('{"message": "the name is in use"}');
    else {
      made.set(name, 'new');
      response.end('{"Id": "new"}');
    }
  });
  before(() => once(server.listen(engine.socketPath), 'listening'));
  after(() => {
    engine.close();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const create = async (): Promise<string> => {
    made.clear();
    await engine.call('GET', '/there');
    asked.length = 0;
    return await createdContainer(engine, 'named', { Image: 'i' });
  };

  it('is made once: by the second call, or by the first where that had come', async () => {
    end = () => {};
    expect(await create()).to.equal('new');
    expect(asked).to.deep.equal(['POST /containers/create', 'POST /containers/create']);
    end = (name) => made.set(name, 'first');
    expect(await create()).to.equal('first');
    expect(asked.at(-1)).to.equal('GET /containers/named/json');
  });

  it('is not, where the first is still being made', async () => {
    end = (name) => made.set(name, '');
    const error = await create().catch((thrown) => thrown);
    expect(error).to.be.instanceOf(EngineError).and.include({ status: 409 });
  });

  it('is not, where the engine has another of its name', async () => {
    const other = new Engine(engine.socketPath);
    made.set('named', 'other');
    const error = await createdContainer(other, 'named', {}).catch((thrown) => thrown);
    other.close();
    expect(error).to.be.instanceOf(EngineError).and.include({ status: 409 });
  });
});
