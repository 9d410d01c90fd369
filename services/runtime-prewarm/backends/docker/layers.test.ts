// What a real engine cannot be brought to do at will: answer too late, and fail to delete an image.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { LABELS } from '../../domain/container-config.ts';
import { Engine } from './engine.ts';
import { DockerLayers } from './layers.ts';

const INSTANCE = 'polar-test';
const image = (Id: string) => ({
  ...{ Id, RepoTags: [`${INSTANCE}/layer:old`] },
  Labels: { [LABELS.instance]: INSTANCE, [LABELS.layer]: 'old' },
});

describe('layers of an engine that fails', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
  const stuck: string[] = [];
  const asked: string[] = [];
  let answer: RequestListener = () => {};
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url?.split('?')[0]}`);
    answer(request, response);
  });
  const engine = new Engine(join(folder, 'engine.sock'));
  const limits = { maxBytes: 1_000, freeBytes: 0 };
  const layers = new DockerLayers(engine, INSTANCE, limits, (_what, id) => stuck.push(id));
  before(async () => {
    await once(server.listen(engine.socketPath), 'listening');
  });
  beforeEach(() => {
    asked.length = 0;
  });
  after(() => {
    layers[Symbol.dispose]();
    engine.close();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  it('are none where they cannot be made in time, and the container can be used', async () => {
    answer = ({ method }, response) => {
      if (method === 'GET') response.end('{"Image": "sha256:i", "SizeRw": 1, "Mounts": []}');
    };
    expect(await layers.add('key', 'c', new AbortController().signal, 1_000)).to.equal(0);
    expect(asked).to.eql(['GET /containers/c/json', 'POST /commit']);
    expect(layers.has('key')).to.equal(false);
  });

  it('end with the reason of who leaves', async () => {
    const leaving = new AbortController();
    answer = () => leaving.abort(new Error('left'));
    const error = await layers.add('key', 'c', leaving.signal, 60_000).catch((reason) => reason);
    expect(error).to.include({ message: 'left' });
  });

  it('that cannot be deleted are told once, tried at each look, and keep nothing else', async () => {
    answer = ({ url }, response) => {
      response.writeHead(url?.includes('bad') === true ? 500 : 200).end('{"message": "busy"}');
    };
    const all = [image('bad'), image('good')];
    await layers.reap(all);
    await layers.reap(all);
    const once = ['DELETE /images/bad', 'DELETE /images/good'];
    expect(asked).to.eql([...once, ...once]);
    expect(stuck).to.eql(['bad']);
  });

  it('that come while others are deleted stay', async () => {
    let deleted = (): void => {};
    const deleting = new Promise<void>((begun) => {
      answer = ({ method, url = '' }, response) => {
        if (method === 'DELETE') {
          deleted = () => response.end('{}');
          begun();
        } else if (url.startsWith('/commit')) response.end('{"Id": "sha256:new"}');
        else response.end('{"Image": "sha256:i", "SizeRw": 1, "Mounts": []}');
      };
    });
    const coming = { ...image('sha256:new'), RepoTags: [`${INSTANCE}/layer:new`] };
    const reaped = layers.reap([image('good'), coming]);
    await deleting;
    await layers.add('new', 'c', new AbortController().signal, 60_000);
    deleted();
    await reaped;
    expect(asked.filter((one) => one.startsWith('DELETE'))).to.eql(['DELETE /images/good']);
    expect(layers.has('new')).to.equal(true);
  });
});
