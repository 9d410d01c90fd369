// Which backends a node offers, and what a task gets that asks for another.
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findTool, SYSTEM_PATH } from '../../services/runtime-prewarm/host/tools.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { bwrapIsThere, startNode } from '../support/runtime-prewarm.ts';

describe('runtime-prewarm: backends', () => {
  let nats: TestNats;
  before(async () => {
    nats = await startNats();
  });
  after(async () => {
    await nats[Symbol.asyncDispose]();
  });

  it('has no default without bwrap, says why, and how to go on', async () => {
    await using folder = await startNode({ natsUrl: nats.url, start: false });
    const path = join(folder.folder, 'bin');
    mkdirSync(path);
    for (const name of ['sh', 'python3', 'sleep'])
      symlinkSync(findTool(name, SYSTEM_PATH)!, join(path, name));
    await using node = await startNode({ natsUrl: nats.url, path });
    const { backends } = await node.runtimes.listRuntimes({});
    const [bubblewrap, processes] = backends;
    expect(bubblewrap).to.include({ name: 'bubblewrap', isolates: true });
    expect(bubblewrap?.unavailable?.reason).to.equal('BACKEND_UNAVAILABLE');
    expect(bubblewrap?.unavailable?.message).to.match(/no bwrap on PATH.*apt install bubblewrap/);
    expect(processes).to.include({ name: 'process', isolates: false });
    expect(processes?.unavailable).to.equal(undefined);
    const unnamed = await node.acquire().catch((error) => error);
    expect(unnamed.reason).to.equal('BACKEND_UNAVAILABLE');
    expect(unnamed.message).to.match(/bubblewrap.*runtime\.backend to process/);
    const named = await node.acquire({ spec: { backend: 'bubblewrap' } }).catch((error) => error);
    expect(named.reason).to.equal('BACKEND_UNAVAILABLE');
    const chosen = await node.acquire({ spec: { backend: 'process' } });
    expect((await node.sh(chosen, 'echo works')).out).to.equal('works\n');
  });

  it("uses the node's default runtime where a task has none", async () => {
    const runtime = {
      backend: 'process',
      env: { OF: 'node' },
      prepare: [{ command: 'echo prepared > by-node' }],
    };
    await using node = await startNode({ natsUrl: nats.url, node: { default_runtime: runtime } });
    const { runtime: leased } = await node.runtimes.acquireRuntime({ ttl: { seconds: 60n } });
    expect(leased?.backend).to.equal('process');
    expect((await node.sh(leased!.runtimeId, 'echo "$OF"; cat by-node')).out).to.equal('node\nprepared\n');
    const named = await node.acquire({ spec: { env: { OF: 'task' } } });
    expect((await node.sh(named, 'echo "$OF"; ls')).out).to.equal('task\n');
  });

  it('refuses a default runtime that it cannot give, at the start and by field', async () => {
    const runtime = {
      backend: 'process',
      gpus: 2,
      storage_mb: 2,
      allow_internet: true,
      prepare: [{ type: 'upload_file', source: 'x', target: '/x' }],
    };
    const error = await startNode({ natsUrl: nats.url, node: { default_runtime: runtime } }).catch((e) => e);
    expect(error.reason).to.equal('INVALID_CONFIG');
    expect(error.fields.map(({ field }: { field: string }) => field)).to.eql([
      'default_runtime.allow_internet',
      'default_runtime.storage_mb',
      'default_runtime.prepare',
      'default_runtime.gpus',
    ]);
  });

  if (bwrapIsThere) {
    it('takes bubblewrap where it works and nothing is said', async () => {
      await using node = await startNode({ natsUrl: nats.url });
      const { runtime } = await node.runtimes.acquireRuntime({ ttl: { seconds: 60n } });
      expect(runtime).to.include({ backend: 'bubblewrap', workdir: '/polar/session/workspace' });
      expect(runtime?.proxyUrl).to.equal('http://127.0.0.1:4141');
    });
  }
});
