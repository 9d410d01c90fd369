// GPUs are claimed one by one: device files of the test's own stand for them.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { makeDevices, type TestDevices } from '../support/device-nodes.ts';
import { metricsOf } from '../support/metrics.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  isHostRoot,
  managerIsReady,
  spawnManager,
  startNode,
  stopManager,
  type TestNode,
} from '../support/runtime-prewarm.ts';

const BACKENDS = ['bubblewrap', ...(withoutApptainer === undefined ? ['apptainer'] : [])];
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });

if (bwrapIsThere && isHostRoot) {
  describe('runtime-prewarm: GPUs', function () {
    this.timeout(60_000);
    let nats: TestNats;
    let node: TestNode;
    let devices: TestDevices;
    let seen: string;
    before(async () => {
      nats = await startNats();
      // Apptainer shows files that lie directly in /dev, and no others there.
      devices = makeDevices(true);
      seen = `ls /dev | grep ${devices.pattern} | tr '\\n' ' '`;
      const { common } = devices;
      const gpus = { devices: devices.devices, common };
      node = await startNode({ natsUrl: nats.url, path: pathWithApptainer, node: { gpus } });
    });
    after(async () => {
      await node[Symbol.asyncDispose]();
      devices[Symbol.dispose]();
      await nats[Symbol.asyncDispose]();
    });
    afterEach(async () => {
      const { runtimes } = await node.runtimes.listRuntimes({});
      await Promise.all(runtimes.map(({ runtimeId }) => release(runtimeId)));
    });

    const release = (runtimeId: string) => node.runtimes.releaseRuntime({ runtimeId });
    const namesOf = (...ids: string[]): string => ids.map((id) => `${devices.pattern}${id} `).join('');
    const free = async (): Promise<number | undefined> =>
      (await metricsOf(`http://127.0.0.1:${node.port}`))
        .get('polar_runtime_prewarm_gpus')
        ?.get('state="free"');

    for (const backend of BACKENDS) {
      it(`are a session's own in ${backend}, from its first command on until its sandbox goes`, async () => {
        const prepare = [exec(`${seen} > /polar/session/prepared`)];
        const [one, two, three] = (await Promise.all(
          ['s-1', 's-2', 's-3'].map((session) =>
            node.acquire({ spec: { backend, gpus: 1, prepare }, session }),
          ),
        )) as [string, string, string];
        expect(await free()).to.equal(2);
        expect((await node.sh(one, `cat /polar/session/prepared; ${seen}`)).out).to.equal(
          namesOf('0', 'ctl'),
        );
        expect((await node.sh(two, seen)).out).to.equal(namesOf('1', 'ctl'));
        // It can be used, and that of the other is nowhere.
        const read = `head -c 3 /dev/${devices.pattern}1 | od -An -tx1; head -c 3 /dev/${devices.pattern}0`;
        const used = await node.sh(two, read);
        expect([used.out.trim(), used.exitCode]).to.deep.equal(['00 00 00', 1]);
        expect(await free()).to.equal(0);
        const waiting = node.sh(three, seen);
        await sleep(300);
        await release(one);
        expect((await waiting).out).to.equal(namesOf('0', 'ctl'));
        await release(two);
        await release(three);
        expect(await free()).to.equal(2);
      });
    }

    it('of an attempt are the same in all its sandboxes, and go with the last of them', async () => {
      const spec = { gpus: 1 };
      const [run, evaluation] = await Promise.all([
        node.acquire({ spec, session: 'a' }),
        node.acquire({ spec, session: 'a', forEvaluation: true }),
      ]);
      const other = await node.acquire({ spec, session: 'b' });
      expect((await node.sh(run, seen)).out).to.equal(namesOf('0', 'ctl'));
      expect((await node.sh(evaluation, seen)).out).to.equal(namesOf('0', 'ctl'));
      expect((await node.sh(other, seen)).out).to.equal(namesOf('1', 'ctl'));
      await release(run);
      expect(await free()).to.equal(0);
      await release(evaluation);
      expect(await free()).to.equal(1);
    });

    it('are named to commands of process, which see them all', async () => {
      const spec = { backend: 'process', gpus: 1 };
      const ids = [await node.acquire({ spec, session: 'a' }), await node.acquire({ spec, session: 'b' })];
      const told = 'echo "$CUDA_VISIBLE_DEVICES"';
      const env = { CUDA_VISIBLE_DEVICES: '0,1' };
      const outs = await Promise.all(ids.map(async (id) => (await node.sh(id, told, { env })).out));
      expect(outs.sort()).to.deep.equal(['0\n', '1\n']);
    });

    it('are refused by name where the node has not so many', async () => {
      const error = await node.acquire({ spec: { gpus: 3 } }).catch((thrown) => thrown);
      expect(error).to.include({ reason: 'BACKEND_UNAVAILABLE' });
      expect(error.message).to.contain('runtime.gpus: 3 are asked for, this node has 2');
    });

    it('wait for nobody where the operator has them shared', async () => {
      const gpus = { shared: true, devices: devices.devices, common: devices.common };
      await using other = await startNode({ natsUrl: nats.url, node: { id: 'node-2', gpus } });
      for (const session of ['a', 'b']) {
        const id = await other.acquire({ spec: { gpus: 2 }, session });
        expect((await other.sh(id, seen)).out).to.equal(namesOf('0', '1', 'ctl'));
      }
    });

    it('are neither lost nor given twice by a kill of the manager', async () => {
      const gpus = { devices: devices.devices, common: devices.common };
      await using other = await startNode({ natsUrl: nats.url, node: { id: 'node-3', gpus }, start: false });
      let manager: ChildProcess | undefined;
      try {
        for (let round = 0; round < 2; round++) {
          manager = spawnManager(other);
          await managerIsReady(other);
          const id = await other.acquire({ spec: { gpus: 2 }, session: `s-${round}` });
          other.sh(id, `sleep 60 < /dev/${devices.pattern}0`).catch(() => {});
          await eventually('both are taken', async () => {
            const metrics = await metricsOf(`http://127.0.0.1:${other.port}`);
            return metrics.get('polar_runtime_prewarm_gpus')?.get('state="free"') === 0;
          });
          if (round === 1) break;
          manager.kill('SIGKILL');
          await once(manager, 'exit');
        }
      } finally {
        await stopManager(manager);
      }
    });
  });
}
