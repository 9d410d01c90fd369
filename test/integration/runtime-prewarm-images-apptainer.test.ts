// What image files of apptainer were unpacked to goes where the node's disk is full, the longest unused first.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  eventually,
  isHostRoot,
  managerIsReady,
  spawnManager,
  startNode,
  stopManager,
  type TestNode,
} from '../support/runtime-prewarm.ts';
import { makeSif } from '../support/sif.ts';

const DISK_MB = 128;
const IMAGE_BYTES = 12 << 20;
const [HIGH, LOW] = [80, 75];
const READ_NAME = 'read -r name < /etc/name; echo "$name"';

describe('runtime-prewarm: images of apptainer on a full disk', function () {
  this.timeout(60_000);
  if (withoutApptainer !== undefined || !isHostRoot) {
    it(`is skipped: ${withoutApptainer ?? 'it needs root to make a disk'}`);
    return;
  }
  let nats: TestNats;
  let node: TestNode;
  let manager: ChildProcess;
  let data: string;
  const images = mkdtempSync(join(tmpdir(), 'polar-test-images-'));
  before(async () => {
    nats = await startNats();
    // The users of sandboxes read it.
    chmodSync(images, 0o755);
    for (const name of ['one', 'two', 'three']) {
      await makeSif(join(images, `${name}.sif`), name, (root) =>
        writeFileSync(join(root, 'large'), randomBytes(IMAGE_BYTES)),
      );
    }
    const marks = { images_high_percent: HIGH, images_low_percent: LOW, images_keep_seconds: 0 };
    const more = { images_dir: images, layers_free_mb: 0, ...marks };
    node = await startNode({ natsUrl: nats.url, path: pathWithApptainer, node: more, start: false });
    data = join(node.folder, 'data');
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=755`, 'polar-test', data]);
    await startManager();
  });
  after(async () => {
    await stopManager(manager);
    if (data !== undefined) execFileSync('umount', ['-l', data]);
    await node?.[Symbol.asyncDispose]();
    await nats?.[Symbol.asyncDispose]();
    rmSync(images, { recursive: true });
  });

  const startManager = async (): Promise<void> => {
    manager = spawnManager(node);
    await managerIsReady(node);
  };
  const killManager = async (): Promise<void> => {
    manager?.kill('SIGKILL');
    if (manager?.exitCode === null && manager.signalCode === null) await once(manager, 'exit');
  };
  const run = (name: string) => node.acquire({ spec: { backend: 'apptainer', image: `${name}.sif` } });
  const release = (runtimeId: string) => node.runtimes.releaseRuntime({ runtimeId });
  const unpacked = (): string[] =>
    readdirSync(join(data, 'nodes/node-1/unpacked'))
      .map((name) => name.split('.sif@')[0] ?? '')
      .sort();
  const fill = (percent: number): Disposable => {
    const { bavail, blocks, bsize } = statfsSync(data);
    const file = join(data, 'filler');
    writeFileSync(file, Buffer.alloc(bsize * Math.round((blocks * percent) / 100 - (blocks - bavail))));
    return { [Symbol.dispose]: () => rmSync(file) };
  };

  it('goes, but for what a sandbox lies on, and is known after a kill of the manager', async () => {
    const live = await run('one');
    for (const name of ['two', 'three', 'two']) await release(await run(name));
    expect(unpacked()).to.eql(['one', 'three', 'two']);
    {
      using _ = fill(HIGH + 2);
      // It is above the low mark before the last one goes, and below it then.
      await eventually('the longest unused has gone', () => used(data) <= LOW);
      expect(unpacked()).to.eql(['one', 'two']);
    }
    {
      using _ = fill(98);
      await eventually('all but one have gone', () => unpacked().length === 1);
      expect((await node.sh(live, READ_NAME)).out).to.equal('one\n');
    }
    expect(unpacked()).to.eql(['one']);
    await release(await run('two'));
    await release(live);
    await killManager();
    await startManager();
    {
      using _ = fill(98);
      await eventually('what an earlier manager unpacked goes', () => unpacked().length === 0);
    }
    const again = await run('two');
    expect((await node.sh(again, READ_NAME)).out).to.equal('two\n');
    await release(again);
  });
});

function used(folder: string): number {
  const { blocks, bavail } = statfsSync(folder);
  return 100 * (1 - bavail / blocks);
}
