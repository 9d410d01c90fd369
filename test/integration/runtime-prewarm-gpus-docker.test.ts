// GPUs in containers: what the engine is asked for, and devices of the test's own in real containers.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { LABELS } from '../../services/runtime-prewarm/domain/container-config.ts';
import { instanceOf } from '../../services/runtime-prewarm/host/host.ts';
import type { TestEngine } from '../support/container-engine.ts';
import { makeDevices, type TestDevices } from '../support/device-nodes.ts';
import { dockerIsThere, startDocker } from '../support/docker.ts';
import { copyShell } from '../support/image.ts';
import { isLong } from '../support/long.ts';
import { metricsOf } from '../support/metrics.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { overhear } from '../support/overheard-socket.ts';
import { podmanIsThere, startPodmanWithPrograms } from '../support/podman.ts';
import {
  eventually,
  managerIsReady,
  spawnManager,
  startNode,
  stopManager,
  type TestNode,
} from '../support/runtime-prewarm.ts';

const IMAGE = 'shell:1';
const KIND = 'polar.test/gpu';
const FILES = { docker: 'device_files' };

const release = (node: TestNode, runtimeId: string) => node.runtimes.releaseRuntime({ runtimeId });

if (dockerIsThere) {
  describe('runtime-prewarm: GPUs of docker', function () {
    this.timeout(120_000);
    let nats: TestNats;
    let docker: TestEngine;
    let devices: TestDevices;
    const work = mkdtempSync(join(tmpdir(), 'polar-test-cdi-'));
    const spec = { backend: 'docker', image: IMAGE, gpus: 1 };
    before(async () => {
      devices = makeDevices();
      await copyShell(join(work, 'root'), ['/bin/cat', '/bin/ls']);
      [nats, docker] = await Promise.all([startNats(), startDocker()]);
      await docker.importFolder(join(work, 'root'), IMAGE);
    });
    after(async () => {
      await docker?.[Symbol.asyncDispose]();
      await nats?.[Symbol.asyncDispose]();
      devices[Symbol.dispose]();
      rmSync(work, { recursive: true });
    });

    const nodeWith = (socket: string, id: string, more: object, start = true): Promise<TestNode> => {
      const gpus = { devices: devices.devices, common: devices.common, ...more };
      return startNode({ natsUrl: nats.url, node: { id, docker: { socket, pull: 'never' }, gpus }, start });
    };

    /** This engine has neither, and refuses: what it was asked for is what counts. */
    const requestsOf = async (more: object): Promise<unknown[]> => {
      await using overheard = await overhear(docker.socket);
      await using node = await nodeWith(overheard.socket, 'node-1', more);
      for (const gpus of [1, 2]) {
        const error = await node.acquire({ spec: { ...spec, gpus }, session: `s-${gpus}` }).catch((e) => e);
        expect(error).to.include({ reason: 'BACKEND_UNAVAILABLE' });
        expect(error.message).to.contain('runtime.gpus');
        await eventually('what failed has let go', async () => (await claimedOf(node)) === 0);
      }
      const asked = overheard.said.matchAll(/"DeviceRequests":(\[.*?\}\])/g);
      return [...asked].map(([, one]) => JSON.parse(one ?? ''));
    };

    it('are asked for by their ids, each container for its own', async () => {
      expect(await requestsOf({})).to.deep.equal([
        [{ DeviceIDs: ['0'], Capabilities: [['gpu']] }],
        [{ DeviceIDs: ['0', '1'], Capabilities: [['gpu']] }],
      ]);
    });

    it('are asked for by their names of the Container Device Interface where they have some', async () => {
      const named = devices.devices.map((one) => ({ ...one, cdi: `${KIND}=${one.id}` }));
      expect(await requestsOf({ devices: named })).to.deep.equal([
        [{ Driver: 'cdi', DeviceIDs: [`${KIND}=0`] }],
        [{ Driver: 'cdi', DeviceIDs: [`${KIND}=0`, `${KIND}=1`] }],
      ]);
    });

    it('are asked for as a number where they are shared', async () => {
      expect(await requestsOf({ shared: true, devices: [] })).to.deep.equal([
        [{ Count: 1, Capabilities: [['gpu']] }],
        [{ Count: 2, Capabilities: [['gpu']] }],
      ]);
    });

    it('as device files are each container’s own, for as long as it lives', async () => {
      await using node = await nodeWith(docker.socket, 'node-1', FILES);
      const ids = await Promise.all(['a', 'b'].map((session) => node.acquire({ spec, session })));
      const seen = async (id = ''): Promise<string> => (await node.sh(id, 'cd /dev; echo gpu*')).out.trim();
      expect((await Promise.all(ids.map(seen))).sort()).to.deep.equal(['gpu0 gpuctl', 'gpu1 gpuctl']);
      expect(await freeOf(node)).to.equal(0);
      const waiting = node.acquire({ spec, session: 'c' });
      const [one = '', two = ''] = ids;
      const own = await seen(one);
      await release(node, one);
      expect(await seen(await waiting)).to.equal(own);
      // All sandboxes of an attempt have the same.
      const again = await node.acquire({ spec, session: 'b', forEvaluation: true });
      expect(await seen(again)).to.equal(await seen(two));
    });

    if (isLong) {
      it('are not given to another while a container of an earlier manager may have them', async () => {
        await using node = await nodeWith(docker.socket, 'node-2', FILES, false);
        const claims = join(node.folder, 'data/nodes/node-2/gpus.json');
        const first = spawnManager(node);
        await managerIsReady(node);
        await node.acquire({ spec });
        expect(Object.keys(JSON.parse(readFileSync(claims, 'utf8')))).to.deep.equal(['0']);
        first.kill('SIGKILL');
        // Of an engine that is away nobody knows what runs there.
        await docker.kill();
        const second = spawnManager(node);
        try {
          await managerIsReady(node);
          expect(await freeOf(node)).to.equal(1);
          await docker.start();
          await eventually('nothing of it is left', async () => (await freeOf(node)) === 2, 60_000);
          const label = `${LABELS.instance}=${instanceOf(join(node.folder, 'data/nodes/node-2'))}`;
          expect(await docker.containers(label)).to.eql([]);
        } finally {
          await stopManager(second);
        }
      });
    }
  });
}

if (podmanIsThere && isLong) {
  describe('runtime-prewarm: GPUs of podman', function () {
    this.timeout(120_000);
    it('are device files of each container’s own', async () => {
      await using nats = await startNats();
      await using podman = await startPodmanWithPrograms();
      using devices = makeDevices();
      const gpus = { devices: devices.devices, common: devices.common };
      const more = { podman: { socket: podman.socket, pull: 'never' }, gpus };
      await using node = await startNode({ natsUrl: nats.url, node: more });
      const spec = { backend: 'podman', image: 'polar-test-programs:latest', gpus: 1 };
      const outs = [];
      for (const session of ['a', 'b']) {
        const id = await node.acquire({ spec, session });
        outs.push((await node.sh(id, 'cd /dev; echo gpu*; head -c 1 gpu[01] | wc -c')).out);
      }
      expect(outs).to.deep.equal(['gpu0 gpuctl\n0\n', 'gpu1 gpuctl\n1\n']);
    });
  });
}

const gpusOf = async (node: TestNode, state: string): Promise<number | undefined> =>
  (await metricsOf(`http://127.0.0.1:${node.port}`))
    .get('polar_runtime_prewarm_gpus')
    ?.get(`state="${state}"`);
const freeOf = (node: TestNode): Promise<number | undefined> => gpusOf(node, 'free');
const claimedOf = (node: TestNode): Promise<number | undefined> => gpusOf(node, 'claimed');
