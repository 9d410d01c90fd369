// Prepared once, cloned many times: what clones share, what they do not, and which layers are kept.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { createLogger } from '../../services/common/logger.ts';
import { readConfig } from '../../services/runtime-prewarm/config.ts';
import { RuntimePrewarmService } from '../../services/runtime-prewarm/service.ts';
import { copyShell } from '../support/image.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  acquireFrom,
  bwrapIsThere,
  eventually,
  isHostRoot,
  processesWith,
  shellIn,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
/** Differs in each preparation. */
const STAMP = 'cat /proc/sys/kernel/random/uuid > stamp';
const layersOf = (folder: string): string[] => readdirSync(join(folder, 'data/nodes/node-1/layers')).sort();

if (bwrapIsThere && isHostRoot) {
  describe('runtime-prewarm: layers', () => {
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

    const stamp = async (id: string): Promise<string> => (await node.sh(id, 'cat stamp')).out;

    it('prepares once, however many ask at once, and lets each clone change its own', async () => {
      const spec = { prepare: [exec(`${STAMP}; echo base > /etc/made; echo gone > gone; sleep 0.3`)] };
      const ids = await Promise.all([1, 2, 3].map(() => node.acquire({ spec })));
      const [one = '', two = '', three = ''] = ids;
      expect(new Set(await Promise.all(ids.map(stamp))).size).to.equal(1);
      await node.sh(one, 'echo mine > stamp; rm gone; mkdir -p new/folder');
      expect(await stamp(one)).to.equal('mine\n');
      expect((await node.sh(one, 'ls')).out).to.equal('new\nstamp\n');
      expect(await stamp(three)).to.equal(await stamp(two));
      expect((await node.sh(two, 'ls; cat /etc/made; command -v python3')).out).to.match(
        /^gone\nstamp\nbase\n\/usr\//,
      );
      const later = await node.acquire({ spec });
      expect(await stamp(later)).to.equal(await stamp(two));
    });

    it('moves files into and out of clones, and keeps them off the programs of the host', async () => {
      const id = await node.acquire({ spec: { prepare: [exec('echo prepared > made')] } });
      const at = '/polar/session/workspace';
      await node.runtimes.putFiles({
        runtimeId: id,
        files: [{ target: `${at}/put`, content: Buffer.from('put\n') }],
      });
      expect((await node.sh(id, 'cat made put')).out).to.equal('prepared\nput\n');
      const read = await node.runtimes.getFile({ runtimeId: id, path: `${at}/made` });
      expect(Buffer.from(read.content).toString()).to.equal('prepared\n');
      const refused = await node.runtimes
        .putFiles({ runtimeId: id, files: [{ target: '/usr/bin/put', content: Buffer.from('x') }] })
        .catch((error) => error);
      expect(refused.reason).to.equal('UNSAFE_PATH');
    });

    it('tells preparations apart by their steps, environment, limits and image', async () => {
      const prepare = [exec(STAMP)];
      const specs = [
        { prepare },
        { prepare: [...prepare, exec('true')] },
        { prepare, env: { A: '1' } },
        { prepare, memoryMb: 512 },
        { prepare: [exec('true')], evalPrepare: { steps: [...prepare, exec('echo eval')] } },
      ];
      const ids = await Promise.all(
        specs.map((spec, i) => node.acquire({ spec, forEvaluation: i === specs.length - 1 })),
      );
      expect(new Set(await Promise.all(ids.map(stamp))).size).to.equal(specs.length);
    });

    it('prepares each sandbox where the task says so', async () => {
      const spec = { prepare: [exec(STAMP)], prepareEach: true };
      const [one, two] = [await node.acquire({ spec }), await node.acquire({ spec })];
      expect(await stamp(one)).not.to.equal(await stamp(two));
    });

    it('lets nobody wait longer than leaves time to prepare alone', async () => {
      const slow = sleepMark();
      const spec = { prepare: [exec(`${STAMP}; ${slow} & wait`)] };
      const steps = (): number[] =>
        processesWith(slow).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep'));
      const patient = node.acquire({ spec });
      await eventually('the first prepares', () => steps().length === 1);
      const ttl = { seconds: 60n };
      const hasty = node.runtimes.acquireRuntime({ spec, ttl, prepareTimeout: { seconds: 6n } });
      await eventually('the second does, too', () => steps().length === 2);
      for (const pid of steps()) process.kill(pid, 'SIGTERM');
      expect(await stamp((await hasty).runtime?.runtimeId ?? '')).not.to.equal(await stamp(await patient));
    });

    it('goes on with the next where the one that prepares fails or is given up', async () => {
      const failing = { prepare: [exec('sleep 0.2; echo why >&2; exit 3')] };
      const failed = await Promise.all([1, 2, 3].map(() => node.acquire({ spec: failing }).catch((e) => e)));
      expect(failed.map(({ reason }) => reason)).to.eql(Array(3).fill('PREPARE_FAILED'));
      const leave = new AbortController();
      const spec = { prepare: [exec(`${STAMP}; touch begun; sleep 1`)] };
      const given = node.runtimes
        .acquireRuntime({ spec, ttl: { seconds: 60n } }, { signal: leave.signal })
        .catch((error) => error);
      await eventually('the preparation has begun', () => hasBegun(node.folder));
      const waiting = [node.acquire({ spec }), node.acquire({ spec })];
      leave.abort();
      expect((await given) instanceof Error).to.equal(true);
      const [one = '', two = ''] = await Promise.all(waiting);
      expect(await stamp(one)).to.equal(await stamp(two));
    });

    it('lets clones rename what was prepared, and shows nothing of the host where a link has come along', async () => {
      const workspace = 'mkdir -p src/below; echo prepared > src/below/made';
      const id = await node.acquire({
        spec: { prepare: [exec(`${workspace}; mkdir /own; ln -s /tmp /own/link`)] },
      });
      const rename = 'import os; os.rename("src", "lib"); os.rename("/own", "/opt/own")';
      const { out, err } = await node.sh(id, `python3 -c '${rename}'; ls; cat lib/below/made`);
      expect([out, err]).to.eql(['lib\nprepared\n', '']);
      const again = await node.sh(id, 'mv lib src; mkdir lib; echo new > src/below/new; ls lib src/below');
      expect(again.out).to.equal('lib:\n\nsrc/below:\nmade\nnew\n');
      const source = join(node.folder, 'data/cache');
      mkdirSync(join(source, 'one'), { recursive: true });
      const mounts = [{ source: join(source, 'one'), target: '/opt/own/link/here' }];
      const refused = await node.sh(id, 'true', { mounts }).catch((error) => error);
      expect(refused.message).to.contain('a link leads away from /opt/own/link/here');
    });

    it('lays them over images, with what a preparation took away', async () => {
      const image = join(node.folder, 'data/images/small');
      mkdirSync(join(image, 'etc'), { recursive: true });
      writeFileSync(join(image, 'etc/name'), 'small\n');
      writeFileSync(join(image, 'etc/old'), 'old\n');
      await copyShell(image, ['/bin/rm']);
      const spec = { image: 'small', prepare: [exec('echo prepared > /etc/name; rm /etc/old')] };
      await node.acquire({ spec });
      const clone = await node.acquire({ spec });
      const script = 'read -r name < /etc/name; echo "$name"; test -e /etc/old || echo gone';
      expect((await node.sh(clone, script)).out).to.equal('prepared\ngone\n');
    });

    it('moves files also where an agent has left no program that runs', async () => {
      const id = await node.acquire({ spec: { prepare: [exec('echo prepared > made')] } });
      await node.sh(id, 'rm /bin /lib /lib64; mv made kept');
      expect((await node.sh(id, 'true')).exitCode).to.equal(127);
      const path = '/polar/session/workspace/put';
      await node.runtimes.putFiles({ runtimeId: id, files: [{ target: path, content: Buffer.from('put') }] });
      const { content } = await node.runtimes.getFile({ runtimeId: id, path });
      expect(Buffer.from(content).toString()).to.equal('put');
    });

    it('prepares anew where somebody has deleted a layer, or a part of it', async () => {
      const spec = { prepare: [exec(STAMP)], env: { DELETED: '1' } };
      const folder = join(node.folder, 'data/nodes/node-1/layers');
      const before = layersOf(node.folder);
      await node.acquire({ spec });
      const [key = ''] = layersOf(node.folder).filter((one) => !before.includes(one));
      for (const part of ['', 'root']) {
        rmSync(join(folder, key, part), { recursive: true });
        const ids = [await node.acquire({ spec }), await node.acquire({ spec })];
        const [one, two] = await Promise.all(ids.map(stamp));
        expect(one).to.equal(two);
        expect(layersOf(node.folder)).to.include(key);
      }
    });

    it('shows no path of the host', async () => {
      const id = await node.acquire({ spec: { prepare: [exec('true')] } });
      const { out } = await node.sh(id, 'grep overlay /proc/self/mountinfo');
      expect(out).to.match(/lowerdir=layers\/[0-9a-f]{32}\/root,/);
      expect(out).not.to.contain(node.folder);
    });

    it('keeps layers over a restart, and uses none that is torn', async () => {
      await using configured = await startNode({ natsUrl: nats.url, start: false });
      const spec = { prepare: [exec(STAMP)] };
      const stampOf = async (): Promise<string> => {
        const stop = new AbortController();
        await using _service = await RuntimePrewarmService.start(
          readConfig(configured.env),
          createLogger('test', 'silent'),
          stop.signal,
        );
        try {
          const runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${configured.port}`);
          return (await shellIn(runtimes, await acquireFrom(runtimes, { spec }), 'cat stamp')).out;
        } finally {
          stop.abort();
        }
      };
      const first = await stampOf();
      const [key = ''] = layersOf(configured.folder);
      const folder = join(configured.folder, 'data/nodes/node-1/layers');
      for (const torn of ['.making-1', 'no-mark', 'other-boot'])
        mkdirSync(join(folder, torn, 'root'), { recursive: true });
      writeFileSync(join(folder, 'other-boot/layer.json'), JSON.stringify({ bytes: 1, boot: 'earlier' }));
      expect(await stampOf()).to.equal(first);
      expect(layersOf(configured.folder)).to.eql([key]);
      writeFileSync(join(folder, key, 'layer.json'), '{');
      expect(await stampOf()).not.to.equal(first);
    });

    it('makes no more sandboxes than the node allows a second, and clones beside them', async () => {
      const limits = { creates_per_s: { bubblewrap: 0.001 }, creates_burst: 1 };
      await using slow = await startNode({ natsUrl: nats.url, node: limits });
      const spec = { prepare: [exec('true')] };
      await slow.acquire({ spec });
      await slow.acquire({ spec });
      const late = await slow.runtimes
        .acquireRuntime({ ttl: { seconds: 60n }, prepareTimeout: { nanos: 300_000_000 } })
        .catch((error) => error);
      expect(late.reason).to.equal('PREPARE_TIMEOUT');
    });

    it('makes none larger than there is room, and drops the longest unused', async () => {
      await using small = await startNode({ natsUrl: nats.url, node: { layers_max_mb: 4 } });
      const filled = (name: string, mb: number) => ({
        prepare: [exec(`head -c ${mb}M /dev/urandom > ${name}`)],
      });
      await small.acquire({ spec: filled('large', 5) });
      expect(layersOf(small.folder)).to.eql([]);
      const one = await small.acquire({ spec: filled('one', 3) });
      const [first] = layersOf(small.folder);
      await small.acquire({ spec: filled('two', 3) });
      expect(layersOf(small.folder), 'a sandbox lies on the first').to.include(first);
      await small.runtimes.releaseRuntime({ runtimeId: one });
      await small.acquire({ spec: filled('three', 1) });
      expect(layersOf(small.folder)).not.to.include(first);
      await using none = await startNode({ natsUrl: nats.url, node: { layers_max_mb: 0 } });
      await none.acquire({ spec: filled('none', 1) });
      expect(layersOf(none.folder)).to.eql([]);
    });
  });
}

/** Whether a step of a sandbox has written `begun`. */
function hasBegun(folder: string): boolean {
  const boxes = join(folder, 'data/nodes/node-1/boxes');
  return readdirSync(boxes).some((box) => existsSync(join(boxes, box, 'root/polar/session/workspace/begun')));
}
