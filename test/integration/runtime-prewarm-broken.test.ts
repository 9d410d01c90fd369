// A sandbox that breaks from outside: whatever its backend stumbles over is a failure of the sandbox, which is tried again. What
// is asked for wrongly, or what an agent has made of it, is not.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PolarError } from '../../services/common/errors.ts';
import { LABELS } from '../../services/runtime-prewarm/domain/container-config.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { eventually, isHostRoot, startNode, type TestNode } from '../support/runtime-prewarm.ts';

const AT = '/polar/session';

describe('runtime-prewarm: a sandbox that breaks', () => {
  let nats: TestNats;
  let node: TestNode;
  before(async () => {
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url });
  });
  after(async () => {
    await node[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  const boxes = (): string => join(node.folder, 'data/nodes', node.nodeId, 'boxes');
  const refusal = (call: Promise<unknown>): Promise<PolarError> =>
    call.then(
      () => expect.fail('it was done'),
      (error) => error,
    );

  it('is not what an agent leaves in place of a file, nor a name that no file has', async () => {
    const runtimeId = await node.acquire({ spec: { backend: 'process' } });
    const bind = `import socket; socket.socket(socket.AF_UNIX).bind('socket')`;
    await node.sh(runtimeId, `cd ${AT}; python3 -c "${bind}"; mkfifo pipe`);
    const put = (target: string): Promise<unknown> =>
      node.runtimes.putFiles({ runtimeId, files: [{ target, content: Buffer.from('a') }] });
    const long = 'x'.repeat(300);
    const calls = [
      node.runtimes.getFile({ runtimeId, path: `${AT}/socket` }),
      node.runtimes.getFile({ runtimeId, path: `${AT}/pipe` }),
      ...[put(`${AT}/${long}`), put(`${AT}/${long}/file`), put(`${AT}${'/a'.repeat(600)}`)],
    ];
    for (const { reason, message } of await Promise.all(calls.map(refusal))) {
      expect(reason, message).to.equal('UNSAFE_PATH');
    }
  });

  it('is not a step that no process can be given', async () => {
    const command = `true ${'x'.repeat(128 * 1024)}`;
    const prepare = [{ step: { case: 'exec' as const, value: { command } } }];
    const { reason } = await refusal(node.acquire({ spec: { backend: 'process', prepare } }));
    expect(reason).to.be.oneOf(['PREPARE_FAILED', 'INVALID_REQUEST']);
  });

  it('leaves nothing behind where it is removed while files are put into it', async () => {
    const runtimeId = await node.acquire({ spec: { backend: 'process' } });
    const files = Array.from({ length: 5_000 }, (_, i) => ({
      target: `${AT}/folder-${i % 300}/${i}`,
      content: Buffer.from('a'),
    }));
    const put = refusal(node.runtimes.putFiles({ runtimeId, files }));
    await eventually('it has begun', () =>
      existsSync(join(boxes(), runtimeId, 'root', files[0]?.target ?? '')),
    );
    await node.runtimes.releaseRuntime({ runtimeId });
    expect((await put).reason).to.equal('RUNTIME_LOST');
    expect(readdirSync(boxes())).not.to.include(runtimeId);
  });

  it('is SANDBOX_FAILED with what went wrong, for files and for commands', async () => {
    const runtimeId = await node.acquire({ spec: { backend: 'process' } });
    const files = [{ target: `${AT}/a`, content: Buffer.from('a') }];
    await node.runtimes.putFiles({ runtimeId, files });
    rmSync(join(boxes(), runtimeId), { recursive: true });
    // Commands get their output through pipes in there.
    rmSync(join(boxes(), '.fifos'), { recursive: true });
    const calls = [
      node.runtimes.putFiles({ runtimeId, files }),
      node.runtimes.getFile({ runtimeId, path: `${AT}/a` }),
      node.sh(runtimeId, 'true'),
    ];
    for (const error of await Promise.all(calls.map(refusal))) {
      expect(error.reason, error.message).to.equal('SANDBOX_FAILED');
      expect(error.message).to.include('ENOENT');
    }
  });
});

if (isHostRoot) {
  describe('runtime-prewarm: an engine', () => {
    let nats: TestNats;
    let node: TestNode;
    let engine: Server;
    let folder: string;
    const asked: string[] = [];
    before(async () => {
      nats = await startNats();
      folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
      const socket = join(folder, 'engine.sock');
      engine = engineWith(asked);
      await once(engine.listen(socket), 'listening');
      node = await startNode({ natsUrl: nats.url, node: { docker: { socket } } });
    });
    after(async () => {
      engine.closeAllConnections();
      engine.close();
      await node[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
      await nats[Symbol.asyncDispose]();
    });

    it('that cannot delete a container is offered all the same', async () => {
      const { backends } = await node.runtimes.listRuntimes({});
      const { unavailable } = backends.find(({ name }) => name === 'docker') ?? {};
      expect(unavailable?.message).to.equal(undefined);
      expect(asked).to.include('DELETE /containers/stuck');
    });

    it('that begins to work is asked for an image again', async () => {
      const acquired = node.acquire({ spec: { backend: 'docker', image: 'early' } });
      const { reason, message } = await acquired.catch((error) => error);
      expect({ reason, message }).to.include({ reason: 'SANDBOX_FAILED' });
      expect(asked.filter((one) => one === 'GET /images/early/json')).to.have.length(2);
      expect(asked).to.include('POST /containers/create');
    });
  });
}

/** What Docker answers where a mount of a container is busy, and just after its start. */
function engineWith(asked: string[]): Server {
  const answers: Record<string, unknown> = {
    '/containers/json': [{ Id: 'stuck', Names: ['/rt-stuck'], Labels: { [LABELS.runtime]: 'rt-stuck' } }],
    '/images/json': [],
    '/images/early/json': { Id: 'early', Config: null },
    '/info': { OSType: 'linux', PidsLimit: true, MemoryLimit: true, SecurityOptions: [] },
  };
  return createServer(({ method, url = '' }, response) => {
    const path = url.split('?')[0] ?? '';
    const isEarly = path === '/images/early/json' && !asked.includes(`${method} ${path}`);
    asked.push(`${method} ${path}`);
    if (method === 'DELETE') response.writeHead(500).end('{"message": "device or resource busy"}');
    else if (isEarly) response.writeHead(503).end('{"message": "starting"}');
    else response.end(JSON.stringify(answers[path] ?? {}));
  });
}
