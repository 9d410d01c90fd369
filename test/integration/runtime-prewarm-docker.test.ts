// What containers are alone in: isolation, images, the engine that comes and goes, and that nothing outlives the manager.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { sha256 } from '../../services/common/ids.ts';
import { LABELS } from '../../services/runtime-prewarm/domain/container-config.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { ENGINES, type EngineKind, LONG_ENGINES, nodeWith } from '../support/engines.ts';
import { letsNothingThrough } from '../support/host-bait.ts';
import { isLong } from '../support/long.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { startRegistry } from '../support/registry.ts';
import {
  eventually,
  managerIsReady,
  processesWith,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const WORKSPACE = '/polar/session/workspace';
const specFor = ({ backend }: EngineKind) => ({ backend, image: PROGRAMS_IMAGE });
const KILL_ROUNDS = isLong ? 6 : 2;
const KILL_SPREAD_MS = 600;
/** Starts that a killed engine breaks off, and when: of such, Docker forgets nearly every second one. */
const BROKEN_STARTS = 5;
const BREAKS_MS = isLong ? [400, 600, 800] : [400, 700];
/** Folders in which an init looks for a program: for most of a second. */
const LOOKED_IN = 6_000;

const errorOf = async (promise: Promise<unknown>): Promise<{ reason: string; message: string }> =>
  await promise.then(
    () => ({ reason: 'none', message: '' }),
    (error) => error,
  );

for (const kind of ENGINES) {
  describe(`runtime-prewarm: isolation with ${kind.title}`, function () {
    this.timeout(60_000);
    const spec = specFor(kind);
    let nats: TestNats;
    let docker: TestEngine;
    let node: TestNode;
    before(async () => {
      [nats, docker] = await Promise.all([startNats(), kind.start()]);
      node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker) });
    });
    after(async () => {
      await node[Symbol.asyncDispose]();
      await docker[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    });

    it('lets no probe through', async () => {
      await letsNothingThrough(node, spec, (other) => mergedFolder(docker, other), { PROBE_IMAGE: 'yes' });
    });

    it("keeps a command from ending the container's own processes", async () => {
      const id = await node.acquire({ spec });
      const { out } = await node.sh(
        id,
        'kill -KILL 1; kill -KILL -1; for p in $(seq 2 9); do kill -9 $p; done',
      );
      expect(out).to.equal('');
      expect((await node.sh(id, 'echo alive')).out).to.equal('alive\n');
    });

    it('owns the files of the image only where users are mapped', async () => {
      const id = await node.acquire({ spec });
      const { out } = await node.sh(id, 'id -u; touch /usr/new 2> /dev/null && echo written; cd && pwd');
      expect(out).to.equal(kind.mapped ? '0\nwritten\n/root\n' : '200000\n/polar/home\n');
    });
  });
}

for (const kind of LONG_ENGINES) {
  describe(`runtime-prewarm: ${kind.backend}`, function () {
    this.timeout(120_000);
    const spec = specFor(kind);
    let nats: TestNats;
    let docker: TestEngine;
    before(async () => {
      [nats, docker] = await Promise.all([startNats(), kind.start()]);
    });
    after(async () => {
      await docker[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    });

    describe('while its engine runs', () => {
      let node: TestNode;
      before(async () => {
        node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker) });
      });
      after(() => node[Symbol.asyncDispose]());
      afterEach(async () => {
        const { runtimes } = await node.runtimes.listRuntimes({});
        await Promise.all(runtimes.map(({ runtimeId }) => node.runtimes.releaseRuntime({ runtimeId })));
      });

      it('offers its images, and refuses one that is not there by name', async () => {
        const { backends } = await node.runtimes.listRuntimes({});
        expect(backends.find(({ name }) => name === kind.backend)).to.deep.include({
          isolates: true,
          images: [PROGRAMS_IMAGE],
        });
        // No engine can ever have the last ones.
        for (const image of ['no-such:1', '', 'UPPER:1', 'a:b:c', 'http://x/y']) {
          const error = await errorOf(node.acquire({ spec: { ...spec, image } }));
          expect(error, image).to.include({ reason: 'IMAGE_NOT_FOUND' });
          expect(error.message).to.contain(image === '' ? 'set runtime.image' : JSON.stringify(image));
        }
      });

      it('runs nothing of an image by itself', async () => {
        const empty = join(node.folder, 'empty');
        mkdirSync(empty);
        await docker.importFolder(empty, 'bare:1');
        const changes = [
          'ENTRYPOINT ["/bin/false"]',
          'CMD ["x"]',
          'USER 12',
          'WORKDIR /nowhere/here',
          'ENV OF=image',
          'ENV http_proxy=http://proxy.of.the.build:3128',
        ];
        await docker.change(PROGRAMS_IMAGE, 'entered:1', changes);
        const id = await node.acquire({ spec: { ...spec, image: 'entered:1' } });
        expect((await node.sh(id, 'echo "$OF"; id -u; pwd')).out).to.equal(`image\n200000\n${WORKSPACE}\n`);
        const proxied = await node.sh(id, 'curl -sS http://127.0.0.1:4141/x', { proxyAccess: true });
        expect(proxied.out, proxied.err).to.equal('from the proxy');
        const error = await errorOf(node.acquire({ spec: { ...spec, image: 'bare:1' } }));
        expect(error).to.include({ reason: 'BACKEND_UNAVAILABLE' });
        expect(error.message).to.match(/its image needs the program cat/);
      });

      it('refuses an image without the program that keeps it, however long that is looked for', async () => {
        const empty = join(node.folder, 'slow');
        mkdirSync(empty);
        await docker.importFolder(empty, 'bare-slow:1');
        await docker.change('bare-slow:1', 'slow:1', [`ENV PATH=${':'.repeat(LOOKED_IN)}`]);
        const tries = Array.from({ length: 4 }, () =>
          errorOf(node.acquire({ spec: { ...spec, image: 'slow:1' } })),
        );
        for (const error of await Promise.all(tries)) {
          expect(error).to.include({ reason: 'BACKEND_UNAVAILABLE' });
          expect(error.message).to.match(/its image needs the program cat/);
        }
      });

      it('keeps what a command says that does not read its input, and gives others all of it', async () => {
        const id = await node.acquire({ spec });
        const stdin = Buffer.alloc(300_000, 'x');
        for (let i = 0; i < 4; i++) {
          const { out, err, exitCode } = await node.sh(id, 'echo out; echo why >&2; exit 4', { stdin });
          expect([out, err, exitCode]).to.eql(['out\n', 'why\n', 4]);
        }
        expect((await node.sh(id, 'head -c 10; sleep 0.2; wc -c', { stdin })).out).to.match(/^x{10}\d+\n$/);
        expect((await node.sh(id, 'wc -c; wc -c', { stdin })).out).to.equal('300000\n0\n');
      });

      it('refuses by name what this engine cannot give', async () => {
        const gpus = await errorOf(node.acquire({ spec: { ...spec, gpus: 1 } }));
        expect(gpus).to.include({ reason: 'BACKEND_UNAVAILABLE' });
        expect(gpus.message).to.contain('gpus');
        const storage = await errorOf(node.acquire({ spec: { ...spec, storageMb: 64 } }));
        expect(storage).to.include({ reason: 'BACKEND_UNAVAILABLE' });
        expect(storage.message).to.contain('runtime.storage_mb');
        expect(await containers(docker, node)).to.eql([]);
      });

      it('ends a command that hits its memory limit, and says so', async () => {
        const id = await node.acquire({ spec: { ...spec, memoryMb: 64 } });
        const script = "python3 -c 'a = bytearray(200 << 20)'; echo survived; sleep 20";
        const result = await node.sh(id, script);
        expect(result).to.include({
          outOfMemory: true,
          empty: true,
          exitCode: 137,
          timedOut: false,
        });
        expect(Number(result.peakMemoryBytes)).to.be.within(32 << 20, 70 << 20);
        const next = await node.sh(id, 'echo next');
        expect(next).to.include({ outOfMemory: false, out: 'next\n' });
      });

      it('ends a command at its limit in a container that somebody has paused', async () => {
        const id = await node.acquire({ spec });
        const nap = sleepMark();
        const running = node.sh(id, nap, { timeoutMs: 2_000 });
        await eventually('it runs', () => processesWith(nap).length > 0);
        await docker.docker('pause', id);
        expect(await running).to.include({ timedOut: true, empty: true });
        await node.runtimes.releaseRuntime({ runtimeId: id });
        await eventually('none is left', async () => (await containers(docker, node)).length === 0);
      });

      it('tells a run that somebody ended its container under it', async () => {
        for (const end of [['kill'], ['stop', '--time', '1'], ['rm', '--force']]) {
          const id = await node.acquire({ spec });
          const nap = sleepMark();
          const running = errorOf(node.sh(id, nap));
          await eventually('it runs', () => processesWith(nap).length > 0);
          await docker.docker(...end, id);
          expect(await running).to.include({ reason: 'RUNTIME_LOST' });
          await node.runtimes.releaseRuntime({ runtimeId: id });
        }
        await eventually('none is left', async () => (await containers(docker, node)).length === 0);
      });

      it('survives a fork bomb, and proves that nothing of it is left', async () => {
        const id = await node.acquire({ spec });
        // The shell itself forks once and no more: where it cannot, it would end before its time.
        const script = 'f() { f & f & sleep 5; }; (f) 2>/dev/null; while :; do :; done';
        const result = await node.sh(id, script, { timeoutMs: 1_500 });
        expect(result).to.include({ timedOut: true, empty: true });
        expect((await node.sh(id, 'echo alive | cat')).out).to.equal('alive\n');
      });

      it('removes the container with the lease, and one of ours that nobody holds', async () => {
        const id = await node.acquire({ spec });
        expect(await containers(docker, node)).to.have.length(1);
        const label = `${LABELS.instance}=${instanceOf(node)}`;
        const own = ['--name', 'rt-stray', '--label', `${LABELS.runtime}=rt-stray`, '--label', label];
        await docker.docker('create', ...own, '--network', 'none', PROGRAMS_IMAGE, 'true');
        await eventually('the stray one is gone', async () => (await containers(docker, node)).length === 1);
        expect((await node.sh(id, 'echo held')).out).to.equal('held\n');
        const [container = ''] = await containers(docker, node);
        expect(processesWith(container)).to.not.eql([]);
        await node.runtimes.releaseRuntime({ runtimeId: id });
        expect(await containers(docker, node)).to.eql([]);
        await eventually('nothing watches it any more', () => processesWith(container).length === 0);
      });
    });

    it('is told from another engine that answers in its place', async () => {
      const other = kind.backend === 'docker' ? 'podman' : 'docker';
      await using node = await startNode({ natsUrl: nats.url, node: { [other]: { socket: docker.socket } } });
      const { backends } = await node.runtimes.listRuntimes({});
      const why = backends.find(({ name }) => name === other)?.unavailable?.message;
      expect(why).to.contain(`set gateway.nodes[].${kind.backend}.socket`);
    });

    it('leaves no process and no container behind after SIGKILL of the manager', async () => {
      await using node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker), start: false });
      const nap = sleepMark();
      for (let round = 0; round < KILL_ROUNDS; round++) {
        const manager = await startManager(node);
        const id = await node.acquire({ spec });
        node.sh(id, `setsid ${nap} & (${nap} &) ; trap "" TERM HUP; ${nap}`).catch(() => {});
        const more = [node.acquire({ spec }), node.acquire({ spec })];
        for (const one of more) one.catch(() => {});
        await sleep((round * KILL_SPREAD_MS) / KILL_ROUNDS);
        manager.kill('SIGKILL');
        await once(manager, 'exit');
        await eventually('no process is left', () => processesWith(nap).length === 0);
        await eventually('no container is left', async () => (await containers(docker, node)).length === 0);
      }
    });

    it('tells a run that it has lost its sandbox when the engine dies, and goes on with the next', async () => {
      await using node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker) });
      const id = await node.acquire({ spec });
      const nap = sleepMark();
      const running = errorOf(node.sh(id, `setsid ${nap} & ${nap}`));
      await eventually('it runs', () => processesWith(nap).length >= 2);
      await docker.kill();
      expect(await running).to.include({ reason: 'RUNTIME_LOST' });
      expect(processesWith(nap)).to.eql([]);
      expect(await errorOf(node.sh(id, 'true'))).to.include({ reason: 'RUNTIME_LOST' });
      await eventually('it is not offered', async () => (await offered(kind, node)) !== undefined);
      expect(await offered(kind, node)).to.match(
        kind.backend === 'docker'
          ? /no engine answers at .*docker.sock: start Docker/
          : /no engine answers at .*podman.sock: start `podman system service`/,
      );
      const waiting = node.acquire({ spec });
      await docker.start();
      const next = await waiting;
      await eventually('it is offered', async () => (await offered(kind, node)) === undefined);
      expect((await node.sh(next, 'echo next')).out).to.equal('next\n');
      await eventually('the lost one is gone', async () => (await containers(docker, node)).length === 1);
    });

    if (kind.backend === 'docker') {
      it('deletes what its engine could not when it came back, while the lease still runs', async () => {
        await using node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker) });
        await node.acquire({ spec });
        const [container = ''] = await containers(docker, node);
        const held = join(docker.data, 'containers', container, 'held');
        writeFileSync(held, '');
        execFileSync('chattr', ['+i', held]);
        try {
          await docker.kill();
          await docker.start();
          expect(await containers(docker, node)).to.eql([container]);
        } finally {
          execFileSync('chattr', ['-i', held]);
        }
        await eventually('it is gone', async () => (await containers(docker, node)).length === 0);
      });

      it('ends what an engine that dies while it starts containers forgets', async () => {
        await using node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker) });
        for (const breakMs of BREAKS_MS) {
          const starts = Array.from({ length: BROKEN_STARTS }, () => errorOf(node.acquire({ spec })));
          await sleep(breakMs);
          await docker.kill();
          await docker.start();
          await Promise.all(starts);
        }
        await node.acquire({ spec });
        const known = async (): Promise<number> => (await containers(docker, node)).length;
        await eventually(
          'each shim has its container',
          async () => (await docker.shims()).length === (await known()),
        );
      });
    }

    it('fetches an image where it may, and says why it could not', async () => {
      await using node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker, 'missing') });
      // Nothing listens there: another try may do better.
      const error = await errorOf(node.acquire({ spec: { ...spec, image: '127.0.0.1:1/tools/none:2' } }));
      expect(error).to.include({ reason: 'SANDBOX_FAILED' });
      expect(error.message).to.match(/tools\/none:2.*could not be pulled: .*refused/);
    });

    // Podman asks every registry for TLS that is not in its own configuration.
    if (kind.backend === 'docker') {
      it('tells an image that the registry does not have, once for all who wait', async () => {
        await using registry = await startRegistry();
        await using node = await startNode({ natsUrl: nats.url, node: nodeWith(kind, docker, 'missing') });
        const asking = { ...spec, image: `${registry.host}/tools/none:2` };
        const leaving = new AbortController();
        const owner = { sessionId: 'first' };
        const first = errorOf(
          node.runtimes.acquireRuntime(
            { spec: asking, owner, ttl: { seconds: 60n } },
            { signal: leaving.signal },
          ),
        );
        await eventually('it is asked for', () => registry.asked > 0);
        const second = errorOf(node.acquire({ spec: asking, session: 'second' }));
        await sleep(200);
        leaving.abort();
        await first;
        await sleep(200);
        registry.answer();
        const error = await second;
        expect(error).to.include({ reason: 'IMAGE_NOT_FOUND' });
        expect(error.message).to.match(/tools\/none:2.*could not be pulled: .*unknown/);
      });
    }
  });
}

/** Why it is not offered, undefined where it is. */
async function offered({ backend }: EngineKind, node: TestNode): Promise<string | undefined> {
  const { backends } = await node.runtimes.listRuntimes({});
  return backends.find(({ name }) => name === backend)?.unavailable?.message;
}

const instanceOf = ({ folder }: TestNode): string =>
  `polar-${sha256(join(folder, 'data/nodes/node-1')).slice(0, 12)}`;

const containers = (docker: TestEngine, node: TestNode): Promise<string[]> =>
  docker.containers(`${LABELS.instance}=${instanceOf(node)}`);

/** Where the host has the files of a container. */
async function mergedFolder(docker: TestEngine, runtimeId: string): Promise<string> {
  const filter = `label=${LABELS.runtime}=${runtimeId}`;
  const id = (await docker.docker('ps', '--quiet', '--filter', filter)).trim();
  return (await docker.docker('inspect', '--format', '{{.GraphDriver.Data.MergedDir}}', id)).trim();
}

async function startManager(node: TestNode): Promise<ChildProcess> {
  const manager = spawnManager(node);
  await managerIsReady(node);
  return manager;
}
