// A sandbox of bubblewrap that may write only so much: what happens at the cap, and that its disk leaves nothing behind.
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { PrepareStepSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { copyShell } from '../support/image.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  isHostRoot,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';

const MIB = 1024 * 1024;
const disksAreThere = bwrapIsThere && isHostRoot && existsSync('/dev/loop-control');

/** Files behind the loop devices of this machine. */
function loopFiles(): string[] {
  return readdirSync('/sys/block')
    .map((name) => `/sys/block/${name}/loop/backing_file`)
    .filter(existsSync)
    .map((path) => readFileSync(path, 'utf8'));
}

const disksOf = (runtimeId: string): string[] => loopFiles().filter((file) => file.includes(runtimeId));
/** With what a shell can do alone: 400 times 64 KiB. */
const KIB_64 = 'x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done';
const COUNT = Array.from({ length: 400 }, (_, i) => i).join(' ');
const FILL = 'dd if=/dev/zero of=fill bs=1M count=100';

if (disksAreThere) {
  describe('runtime-prewarm: storage_mb with bubblewrap', () => {
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

    it('ends what is written above it with ENOSPC, and goes on when there is room again', async () => {
      const id = await node.acquire({ spec: { storageMb: 32 } });
      const { out, err, exitCode } = await node.sh(id, `${FILL}; code=$?; stat -c %s fill; exit $code`);
      expect(exitCode).to.equal(1);
      expect(err).to.contain('No space left on device');
      expect(Number(out)).to.be.within(20 * MIB, 32 * MIB);
      expect((await node.sh(id, 'rm fill; echo kept > file')).exitCode).to.equal(0);
      const { content } = await node.runtimes.getFile({
        runtimeId: id,
        path: '/polar/session/workspace/file',
      });
      expect(Buffer.from(content).toString()).to.equal('kept\n');
    });

    it('holds for images too, and beside sandboxes without a cap', async () => {
      await copyShell(join(node.folder, 'data/images/tiny'));
      const [capped, free] = [
        await node.acquire({ spec: { image: 'tiny', storageMb: 16 } }),
        await node.acquire({ spec: { image: 'tiny' } }),
      ];
      const script = `${KIB_64}; for i in ${COUNT}; do echo $x || exit 7; done > fill; exit 9`;
      const { exitCode, err } = await node.sh(capped, script);
      expect(err).to.match(/I\/O error|No space left/);
      expect(exitCode).to.equal(7);
      expect((await node.sh(free, 'echo room > file')).exitCode).to.equal(0);
    });

    it("takes a preparation above it for the task's own failure", async () => {
      const value = { target: '/polar/session/workspace/large', content: new Uint8Array(12 * MIB) };
      const prepare = [create(PrepareStepSchema, { step: { case: 'uploadFile', value } })];
      const error = await node.acquire({ spec: { storageMb: 8, prepare } }).catch((reason) => reason);
      expect(error.reason).to.equal('PREPARE_FAILED');
      expect(error.message).to.contain('runtime.storage_mb (8)').and.to.contain('ENOSPC');
    });

    it('leaves no device and no folder behind when the sandbox is released', async () => {
      const id = await node.acquire({ spec: { storageMb: 8 } });
      await node.sh(id, `${FILL}; true`);
      expect(disksOf(id)).to.have.length(1);
      await node.runtimes.releaseRuntime({ runtimeId: id });
      await eventually('its device is free', () => disksOf(id).length === 0);
      expect(existsSync(join(node.folder, 'data/nodes/node-1/boxes', id))).to.equal(false);
    });

    it('nor when the manager is killed', async () => {
      await using other = await startNode({ natsUrl: nats.url, start: false });
      const manager = spawnManager(other);
      const exited = once(manager, 'exit');
      let id = '';
      await eventually('it has a sandbox', async () => {
        id = await other.acquire({ spec: { storageMb: 8 } }).catch(() => '');
        return id !== '';
      });
      expect(disksOf(id)).to.have.length(1);
      manager.kill('SIGKILL');
      await exited;
      await eventually('its device is free', () => disksOf(id).length === 0);
      await eventually(
        'its folder is gone',
        () => !existsSync(join(other.folder, 'data/nodes/node-1/boxes', id)),
      );
    });
  });
}
