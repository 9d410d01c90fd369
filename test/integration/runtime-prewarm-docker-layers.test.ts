// Prepared once, cloned many times, in containers: layers are images of the manager's own, and go with it.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { LABELS } from '../../services/runtime-prewarm/domain/container-config.ts';
import { instanceOf } from '../../services/runtime-prewarm/host/host.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { isLong } from '../support/long.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  eventually,
  managerIsReady,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';

const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
/** Differs in each preparation; long enough to be worth a layer. */
const STAMP = 'cat /proc/sys/kernel/random/uuid > stamp; sleep 0.7';
const KILL_ROUNDS = isLong ? 4 : 2;
const KILL_SPREAD_MS = 1_600;

for (const kind of LONG_ENGINES) {
  const { backend } = kind;
  describe(`runtime-prewarm: layers of ${backend}`, function () {
    this.timeout(120_000);
    const stamped = { backend, image: PROGRAMS_IMAGE, prepare: [exec(STAMP)] };
    const filled = (name: string, mb: number) => ({
      ...stamped,
      prepare: [exec(`head -c ${mb}M /dev/urandom > ${name}; sleep 0.7`)],
    });
    let nats: TestNats;
    let docker: TestEngine;
    let node: TestNode;
    before(async () => {
      [nats, docker] = await Promise.all([startNats(), kind.start()]);
      node = await startOne();
    });
    after(async () => {
      await node?.[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    });

    const startOne = (more: object = {}, start = true): Promise<TestNode> =>
      startNode({
        natsUrl: nats.url,
        start,
        node: { ...nodeWith(kind, docker), ...more },
      });
    const stamp = async (id: string): Promise<string> => (await node.sh(id, 'cat stamp')).out;
    const layersOf = (one: TestNode): Promise<string[]> =>
      layerImages(docker, `${LABELS.instance}=${instanceOf(join(one.folder, 'data/nodes/node-1'))}`);

    it('prepares once, however many ask at once, and lets each clone change its own', async () => {
      const before = await layersOf(node);
      const ids = await Promise.all([1, 2, 3].map(() => node.acquire({ spec: stamped })));
      const [one = '', two = '', three = ''] = ids;
      const [first = ''] = await Promise.all(ids.map(stamp));
      expect(await stamp(two)).to.equal(first);
      await Promise.all(ids.map((id) => node.sh(id, `echo ${id} > stamp; touch of-${id}`)));
      expect((await node.sh(three, 'cat stamp; ls')).out).to.equal(`${three}\nof-${three}\nstamp\n`);
      const later = await node.acquire({ spec: stamped });
      expect(await stamp(later)).to.equal(first);
      expect((await node.sh(one, 'cat stamp')).out).to.equal(`${one}\n`);
      const made = (await layersOf(node)).filter((name) => !before.includes(name));
      expect(made).to.have.length(1);
      expect(made[0]).to.match(/^polar-[0-9a-f]{12}\/layer:[0-9a-f]{32}$/);
    });

    it('offers its layers to nobody', async () => {
      const [layer = ''] = await layersOf(node);
      const { backends } = await node.runtimes.listRuntimes({});
      expect(backends.find(({ name }) => name === backend)?.images).to.deep.equal([PROGRAMS_IMAGE]);
      const error = await node.acquire({ spec: { ...stamped, image: layer } }).catch((thrown) => thrown);
      expect(error).to.include({ reason: 'IMAGE_NOT_FOUND' });
    });

    it('makes clones with the limits, the user and the labels of any other', async () => {
      const before = await layersOf(node);
      const spec = { ...stamped, memoryMb: 64 };
      await node.acquire({ spec });
      expect(await layersOf(node)).to.have.length(before.length + 1);
      const clone = await node.acquire({ spec, session: 'limited' });
      const format = '{{.HostConfig.Memory}} {{.Config.User}} {{index .Config.Labels "polar.session"}}';
      const filter = `label=${LABELS.runtime}=${clone}`;
      const container = (await docker.docker('ps', '--quiet', '--filter', filter)).trim();
      expect((await docker.docker('inspect', '--format', format, container)).trim()).to.equal(
        `${64 << 20} 200001:200001 limited`,
      );
    });

    it('makes none of what is done again as fast, of what fails, and where the task says so', async () => {
      const before = await layersOf(node);
      const fast = { ...stamped, prepare: [exec('cat /proc/sys/kernel/random/uuid > stamp')] };
      const ids = await Promise.all([1, 2, 3].map(() => node.acquire({ spec: fast })));
      expect(new Set(await Promise.all(ids.map(stamp))).size).to.equal(3);
      const failing = { ...stamped, prepare: [exec('touch half; sleep 0.7; exit 3')] };
      const failed = await Promise.all(
        [1, 2].map(() => node.acquire({ spec: failing }).catch((error) => error)),
      );
      expect(failed.map(({ reason }) => reason)).to.deep.equal(['PREPARE_FAILED', 'PREPARE_FAILED']);
      const each = { ...stamped, prepareEach: true };
      expect(await stamp(await node.acquire({ spec: each }))).not.to.equal(
        await stamp(await node.acquire({ spec: each })),
      );
      expect(await layersOf(node)).to.deep.equal(before);
    });

    it('makes none where an image keeps files in a volume, which would be missing', async () => {
      await docker.change(PROGRAMS_IMAGE, 'with-volume:1', ['VOLUME /tmp']);
      const prepare = [exec('cat /proc/sys/kernel/random/uuid > /tmp/stamp; sleep 0.7')];
      const spec = { backend, image: 'with-volume:1', prepare };
      const before = await layersOf(node);
      const ids = [await node.acquire({ spec }), await node.acquire({ spec })];
      const stamps = await Promise.all(ids.map(async (id) => (await node.sh(id, 'cat /tmp/stamp')).out));
      expect(new Set(stamps).size).to.equal(2);
      expect(stamps.every((one) => one.length === 37)).to.equal(true);
      expect(await layersOf(node)).to.deep.equal(before);
    });

    it('prepares anew where somebody has deleted a layer', async () => {
      const spec = { ...stamped, env: { DELETED: 'yes' } };
      const before = await layersOf(node);
      const first = await node.acquire({ spec });
      const [layer = ''] = (await layersOf(node)).filter((name) => !before.includes(name));
      await docker.docker('rmi', layer);
      const again = await node.acquire({ spec });
      expect(await stamp(again)).not.to.equal(await stamp(first));
      expect(await layersOf(node)).to.include(layer);
    });

    it('leaves what somebody makes of a sandbox, and runs of that', async () => {
      const clone = await node.acquire({ spec: stamped });
      await docker.docker('commit', clone, 'kept:1');
      await docker.docker('create', '--name', 'kept', '--network', 'none', 'kept:1', 'true');
      await node.runtimes.releaseRuntime({ runtimeId: clone });
      const label = `${LABELS.instance}=${instanceOf(join(node.folder, 'data/nodes/node-1'))}`;
      const names = async (): Promise<string[]> =>
        (await docker.docker('ps', '--all', '--format', '{{.Names}}')).split('\n');
      // The end of the second tells that the look at images is over that followed the end of the first.
      for (const stray of ['rt-stray-1', 'rt-stray-2']) {
        const labels = [`${LABELS.runtime}=${stray}`, label].flatMap((one) => ['--label', one]);
        await docker.docker(
          'create',
          '--name',
          stray,
          ...labels,
          '--network',
          'none',
          PROGRAMS_IMAGE,
          'true',
        );
        await eventually(`a look ends ${stray}`, async () => !(await names()).includes(stray));
      }
      expect(await names()).to.include('kept');
      expect(await docker.docker('images', '--format', '{{.Repository}}')).to.match(/(^|\/)kept$/m);
      await docker.docker('rm', 'kept');
      await node.acquire({ spec: { backend, image: 'kept:1' } });
    });

    it('makes none larger than there is room, and drops the longest unused that nothing lies on', async () => {
      await using small = await startOne({ layers_max_mb: 4 });
      await small.acquire({ spec: filled('large', 5) });
      expect(await layersOf(small)).to.deep.equal([]);
      await small.acquire({ spec: filled('one', 3) });
      const clone = await small.acquire({ spec: filled('one', 3) });
      const [first] = await layersOf(small);
      await small.acquire({ spec: filled('two', 3) });
      expect(await layersOf(small), 'a sandbox lies on the first').to.include(first);
      await small.runtimes.releaseRuntime({ runtimeId: clone });
      await small.acquire({ spec: filled('three', 1) });
      await eventually('the first is gone', async () => !(await layersOf(small)).includes(first ?? ''));
      await using none = await startOne({ layers_max_mb: 0 });
      await none.acquire({ spec: stamped });
      expect(await layersOf(none)).to.deep.equal([]);
    });

    it('keeps out of the way of another node on the same engine, and takes its own along', async () => {
      const mine = await layersOf(node);
      expect(mine).not.to.deep.equal([]);
      const other = await startOne();
      const id = await other.acquire({ spec: stamped });
      const own = (await other.sh(id, 'cat stamp')).out;
      const [layer = ''] = await layersOf(other);
      expect(mine.map((name) => name.split(':')[1])).to.include(layer.split(':')[1]);
      expect(own).not.to.equal(await stamp(await node.acquire({ spec: stamped })));
      await other[Symbol.asyncDispose]();
      expect((await layerImages(docker)).filter((name) => !mine.includes(name))).to.deep.equal([]);
      expect(await layersOf(node)).to.deep.equal(mine);
    });

    it('leaves no image behind after SIGKILL of the manager, also in the making', async () => {
      await using killed = await startOne({}, false);
      for (let round = 0; round < KILL_ROUNDS; round++) {
        const manager = await startManager(killed);
        await killed.acquire({ spec: { ...stamped, env: { ROUND: `${round}` } } });
        expect(await layersOf(killed)).to.have.length(1);
        killed.acquire({ spec: filled('late', 40) }).catch(() => {});
        await sleep((round * KILL_SPREAD_MS) / KILL_ROUNDS);
        manager.kill('SIGKILL');
        await once(manager, 'exit');
        // The guardian; what the engine was still making, the next manager.
        const next = round === 0 ? undefined : await startManager(killed);
        await eventually('none is left', async () => (await layersOf(killed)).length === 0);
        if (next === undefined) continue;
        next.kill('SIGTERM');
        await once(next, 'exit');
      }
    });
  });
}

/** Names of all layers, or of those with a label. */
async function layerImages(docker: TestEngine, label: string = LABELS.layer): Promise<string[]> {
  const filters = [LABELS.layer, label].flatMap((one) => ['--filter', `label=${one}`]);
  const out = await docker.docker('images', '--format', '{{.Repository}}:{{.Tag}}', ...filters);
  // Podman tells the registry of a name that has none.
  return out
    .split('\n')
    .filter(Boolean)
    .map((name) => name.replace('docker.io/', ''))
    .sort();
}

async function startManager(node: TestNode): Promise<ChildProcess> {
  const manager = spawnManager(node);
  await managerIsReady(node);
  return manager;
}
