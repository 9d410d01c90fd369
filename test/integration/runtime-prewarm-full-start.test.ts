// A manager that starts on a full disk, as one does whose machine filled up: it works once there is room, by itself.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  isHostRoot,
  managerIsReady,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';

if (bwrapIsThere && isHostRoot) {
  describe('runtime-prewarm that starts on a full disk', () => {
    let nats: TestNats;
    let node: TestNode;
    let data: string;
    let manager: ChildProcess | undefined;
    before(async () => {
      nats = await startNats();
    });
    after(async () => {
      await nats[Symbol.asyncDispose]();
    });
    beforeEach(async () => {
      node = await startNode({ natsUrl: nats.url, start: false });
      data = join(node.folder, 'data');
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,nr_inodes=1000,mode=755', 'polar-test', data]);
    });
    afterEach(async () => {
      const exited = manager && once(manager, 'exit');
      if (manager?.exitCode === null && manager.kill()) await exited;
      manager = undefined;
      execFileSync('umount', ['-l', data]);
      await node[Symbol.asyncDispose]();
    });

    function fill({ inodes = 0, bytes = Number.MAX_SAFE_INTEGER }): Disposable {
      const folder = join(data, 'filler');
      mkdirSync(folder);
      const { bavail, bsize } = statfsSync(data);
      writeFileSync(join(folder, 'bytes'), Buffer.alloc(Math.max(0, bavail * bsize - bytes)));
      for (let i = 0; statfsSync(data).ffree > inodes; i++) writeFileSync(join(folder, `${i}`), '');
      return { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
    }

    it('offers its backends when there is room', async () => {
      {
        using _ = fill({ inodes: 14 });
        manager = spawnManager(node);
        await managerIsReady(node);
        const { reason, message } = await node.acquire({ spec: {} }).catch((error) => error);
        expect(reason, message).to.equal('BACKEND_UNAVAILABLE');
      }
      for (const backend of ['bubblewrap', 'process', '']) {
        const made = (): Promise<boolean> =>
          node.acquire({ spec: { backend } }).then(
            () => true,
            () => false,
          );
        await eventually(`${backend} works`, made);
      }
    });

    it('has a name of its data, also where it was too full for that', async () => {
      {
        using _ = fill({ inodes: 100, bytes: 0 });
        manager = spawnManager(node);
        expect((await once(manager, 'exit'))[0]).to.equal(1);
      }
      const file = join(data, 'nodes/node-1/data-id');
      // As an earlier version left it.
      writeFileSync(file, '');
      manager = spawnManager(node);
      await managerIsReady(node);
      expect(readFileSync(file, 'utf8')).to.match(/^data-/);
    });
  });
}
