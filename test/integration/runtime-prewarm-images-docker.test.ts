// Images that a node has fetched go where the engine's disk is full, the longest unused first, and no others.
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import type { TestEngine } from '../support/container-engine.ts';
import { dockerIsThere, startDocker } from '../support/docker.ts';
import { copyShell } from '../support/image.ts';
import { isLong } from '../support/long.ts';
import { metricsOf } from '../support/metrics.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { type ImageRegistry, startImageRegistry } from '../support/registry-images.ts';
import {
  eventually,
  managerIsReady,
  spawnManager,
  startNode,
  stopManager,
  type TestNode,
} from '../support/runtime-prewarm.ts';

const DISK_MB = 160;
const IMAGE_BYTES = 8 << 20;
const [HIGH, LOW] = [80, 70];
/** An engine is looked at in that time. */
const LOOKS_MS = 3_500;
const FULL_MS = 1_500;
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });

if (dockerIsThere) {
  describe('runtime-prewarm: images of docker on a full disk', function () {
    this.timeout(120_000);
    let nats: TestNats;
    let docker: TestEngine;
    let registry: ImageRegistry;
    let node: TestNode;
    let manager: ChildProcess;
    let root: string;
    before(async () => {
      root = mkdtempSync(join(tmpdir(), 'polar-test-root-'));
      await copyShell(root, ['/bin/cat']);
      [nats, registry] = await Promise.all([startNats(), startImageRegistry()]);
      docker = await startDocker({ diskMb: DISK_MB });
      await docker.importFolder(root, 'operators:1');
      const marks = { images_high_percent: HIGH, images_low_percent: LOW, images_keep_seconds: 0 };
      const more = { docker: { socket: docker.socket }, layers_free_mb: 0, ...marks };
      node = await startNode({ natsUrl: nats.url, node: more, start: false });
      await startManager();
    });
    after(async () => {
      await stopManager(manager);
      await node?.[Symbol.asyncDispose]();
      await docker?.[Symbol.asyncDispose]();
      await registry?.[Symbol.asyncDispose]();
      await nats?.[Symbol.asyncDispose]();
      rmSync(root, { recursive: true });
    });

    const startManager = async (): Promise<void> => {
      manager = spawnManager(node);
      await managerIsReady(node);
    };
    const killManager = async (): Promise<void> => {
      if (manager === undefined || manager.exitCode !== null || manager.signalCode !== null) return;
      manager.kill('SIGKILL');
      await once(manager, 'exit');
    };
    const made = (name: string): string => {
      const folder = `${root}-${name}`;
      cpSync(root, folder, { recursive: true });
      writeFileSync(join(folder, 'large'), randomBytes(IMAGE_BYTES));
      try {
        return registry.add(name, folder);
      } finally {
        rmSync(folder, { recursive: true });
      }
    };
    const run = (image: string, more: object = {}) =>
      node.acquire({ spec: { backend: 'docker', image, ...more }, session: image });
    const release = (runtimeId: string) => node.runtimes.releaseRuntime({ runtimeId });
    const use = async (image: string): Promise<void> => {
      await release(await run(image));
      await sleep(20);
    };
    const names = async (): Promise<string[]> =>
      (await docker.docker('images', '--format', '{{.Repository}}:{{.Tag}}')).trim().split('\n').sort();
    const isHere = async (image: string): Promise<boolean> => (await names()).includes(image);
    const used = (): number => {
      const { blocks, bavail } = statfsSync(docker.data);
      return 100 * (1 - bavail / blocks);
    };
    /** So much of the disk is used, by what is no image. */
    const fill = (percent: number): Disposable => {
      const { bavail, blocks, bsize } = statfsSync(docker.data);
      const file = join(docker.data, 'filler');
      writeFileSync(file, Buffer.alloc(bsize * Math.round((blocks * percent) / 100 - (blocks - bavail))));
      return { [Symbol.dispose]: () => rmSync(file, { force: true }) };
    };
    /** Holds in the end while the disk is kept full, whatever goes. */
    const pressed = (what: string, holds: () => Promise<boolean>): Promise<void> =>
      eventually(what, async () => {
        using _ = fill(99);
        await sleep(FULL_MS);
        return await holds();
      });
    const removed = async (): Promise<number> => {
      const metrics = await metricsOf(`http://127.0.0.1:${node.port}`);
      return metrics.get('polar_runtime_prewarm_images_removed_total')?.get('backend="docker"') ?? 0;
    };

    it('go from above the high mark until it is below the low one, the longest unused first', async () => {
      const images = ['one', 'two', 'three', 'four', 'five'].map(made);
      for (const image of images) await use(image);
      const [one = '', two = '', three = '', four = '', five = ''] = images;
      await use(one);
      {
        using _ = fill(HIGH - 1);
        await sleep(LOOKS_MS);
        expect(await names()).to.include.members(images);
      }
      using _ = fill(HIGH + 3);
      await eventually('it is below the low mark', () => used() <= LOW);
      await eventually('they are counted', async () => (await removed()) >= 3);
      expect(await names()).to.include.members([one, five, 'operators:1']);
      for (const gone of [two, three, four]) expect(await isHere(gone), gone).to.equal(false);
      expect(await removed()).to.equal(3);
      const before = registry.fetched;
      await use(two);
      expect(registry.fetched).to.equal(before + 1);
    });

    it('stay where a sandbox, another’s container or another name needs them; layers on others go along', async () => {
      const [live, prepared, others, renamed, plain] = ['live', 'prepared', 'others', 'renamed', 'plain'].map(
        made,
      ) as [string, string, string, string, string];
      const id = await run(live);
      await release(await run(prepared, { prepare: [exec('echo kept > /tmp/kept; sleep 0.7')] }));
      for (const image of [others, renamed, plain]) await use(image);
      await docker.docker('create', '--name', 'others', '--network', 'none', others, 'cat');
      await docker.docker('tag', renamed, 'kept:1');
      await pressed('what may go has gone', async () => {
        const left = await names();
        return ![plain, prepared].some((image) => left.includes(image));
      });
      expect(await names()).to.eql([live, others, renamed, 'kept:1', 'operators:1'].sort());
      expect((await node.sh(id, 'echo alive')).out).to.equal('alive\n');
      await release(id);
      await pressed('it goes when its sandbox has', async () => !(await isHere(live)));
      await docker.docker('rm', 'others');
      await pressed('it goes when the container has', async () => !(await isHere(others)));
      await docker.docker('rmi', renamed, 'kept:1');
    });

    if (isLong) {
      it('are known after a kill of the manager, also in the middle of a fetch, and are then nobody else’s', async () => {
        const [fetched, held, own] = ['fetched', 'held', 'own'].map(made) as [string, string, string];
        for (const image of [fetched, own]) await use(image);
        // Who deletes one and gets it again has it for himself.
        await docker.docker('rmi', own);
        await sleep(LOOKS_MS);
        await docker.docker('pull', own);
        registry.hold();
        const before = registry.fetched;
        run(held).catch(() => {});
        await eventually('it is being fetched', () => registry.fetched > before);
        await killManager();
        await startManager();
        expect(await isHere(held)).to.equal(false);
        await pressed('what was fetched goes', async () => !(await isHere(fetched)));
        expect(await names()).to.eql([own, 'operators:1'].sort());
      });
    }
  });
}
