// A sandbox that breaks from outside: whatever its backend stumbles over is a failure of the sandbox, which is tried again.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { PolarError } from '../../services/common/errors.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { startNode, type TestNode } from '../support/runtime-prewarm.ts';

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

  const refusal = (call: Promise<unknown>): Promise<PolarError> =>
    call.then(
      () => expect.fail('it was done'),
      (error) => error,
    );

  it('is SANDBOX_FAILED with what went wrong, for files and for commands', async () => {
    const runtimeId = await node.acquire({ spec: { backend: 'process' } });
    const boxes = join(node.folder, 'data/nodes', node.nodeId, 'boxes');
    const files = [{ target: '/polar/session/a', content: Buffer.from('a') }];
    await node.runtimes.putFiles({ runtimeId, files });
    rmSync(join(boxes, runtimeId), { recursive: true });
    // Commands get their output through pipes in there.
    rmSync(join(boxes, '.fifos'), { recursive: true });
    const calls = [
      node.runtimes.putFiles({ runtimeId, files }),
      node.runtimes.getFile({ runtimeId, path: '/polar/session/a' }),
      node.sh(runtimeId, 'true'),
    ];
    for (const error of await Promise.all(calls.map(refusal))) {
      expect(error.reason, error.message).to.equal('SANDBOX_FAILED');
      expect(error.message).to.include('ENOENT');
    }
  });
});
