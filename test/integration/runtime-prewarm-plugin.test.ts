// Backends of the operator's own: modules that the topology names.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { type Heartbeat, HeartbeatSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { subjects } from '../../services/common/nats/subjects.ts';
import { openPlugin } from '../../services/runtime-prewarm/backends/plugin.ts';
import { startMesh } from '../support/mesh.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { eventually, startNode } from '../support/runtime-prewarm.ts';
import { curlTask, waitForEnd } from '../support/tasks.ts';

const OWN = 'mine/own.ts';
/** Builds on another, and leaves a file when it is closed. */
const MODULE = `import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
export async function openBackend(node) {
  const base = node.builtIn('process');
  return {
    isolates: base.isolates,
    images: () => ['small'],
    create(spec, signal) {
      if (spec.image !== 'small') throw new Error('it has no image ' + spec.image);
      return base.create({ ...spec, image: '' }, signal);
    },
    async [Symbol.asyncDispose]() { writeFileSync(join(import.meta.dirname, 'closed'), ''); },
  };
}
`;
/** Works once: what is asked of it later throws. */
const MOODY = `let asked = 0;
export async function openBackend() {
  return {
    isolates: true,
    images() {
      if (asked++ > 0) throw new Error('not in the mood');
      return ['small'];
    },
    create() { throw new Error('not in the mood'); },
    async [Symbol.asyncDispose]() { throw new Error('not in the mood'); },
  };
}
`;
/** Is opened, and closed, when its gates are. */
const SLOW = `import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
const gate = async (name) => {
  while (!existsSync(join(import.meta.dirname, name))) await sleep(5);
};
export async function openBackend() {
  await gate('open');
  return {
    isolates: true,
    images: () => [],
    create() {},
    async [Symbol.asyncDispose]() {
      writeFileSync(join(import.meta.dirname, 'closing'), '');
      await gate('close');
    },
  };
}
`;
/** Its sandboxes take no file before their gate is open. */
const GATED = `import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
export async function openBackend(node) {
  const base = node.builtIn('process');
  return {
    isolates: base.isolates,
    images: () => [],
    async create(spec, signal) {
      const box = await base.create(spec, signal);
      const put = box.putFiles.bind(box);
      box.putFiles = async (...files) => {
        writeFileSync(join(import.meta.dirname, 'putting'), '');
        while (!existsSync(join(import.meta.dirname, 'put'))) await sleep(5);
        await put(...files);
      };
      return box;
    },
    async [Symbol.asyncDispose]() {},
  };
}
`;
/** Its commands get GPUs as those of another do, and it is told which images it has to keep. */
const HANDED = `import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
const note = (text) => appendFileSync(join(import.meta.dirname, 'kept'), text + ' ');
export async function openBackend(node) {
  const base = node.builtIn('process');
  return {
    isolates: base.isolates,
    gpus: base.gpus,
    images: () => ['small'],
    keep(image) {
      note('keep ' + image);
      return () => note('release ' + image);
    },
    create(spec, signal) {
      note('create ' + spec.image);
      return base.create({ ...spec, image: '' }, signal);
    },
  };
}
`;
const FAULTY: readonly (readonly [path: string, module: string, why: RegExp])[] = [
  ['throws.ts', 'throw new Error("no luck");', /plug-in throws.ts: no luck/],
  ['other.ts', 'export const backend = {};', /exports no function `openBackend`/],
  ['half.ts', 'export const openBackend = async () => ({ isolates: true, images: () => [] });', /create/],
  [
    'later.ts',
    `export const openBackend = async () => ({
      isolates: true, images: async () => { throw new Error('never asked'); }, create() {} });`,
    /plug-in later.ts: .*images\(\)/,
  ],
  [
    'gpus.ts',
    'export const openBackend = async () => ({ isolates: true, gpus: 2, images: () => [], create() {} });',
    /plug-in gpus\.ts: .*gpus: .*from_creation/s,
  ],
  [
    'keep.ts',
    'export const openBackend = async () => ({ isolates: true, keep: [], images: () => [], create() {} });',
    /keep: must be a function/,
  ],
  [
    'needs.ts',
    'export const openBackend = async (node) => node.builtIn("none");',
    /this node has no runtime none/,
  ],
];

describe('runtime-prewarm: backends by path', function () {
  this.timeout(60_000);
  let nats: TestNats;
  let folder: string;
  before(async () => {
    nats = await startNats();
    folder = mkdtempSync(join(tmpdir(), 'polar-test-plugins-'));
    mkdirSync(join(folder, 'plugins/mine'), { recursive: true });
    writeFileSync(join(folder, 'plugins', OWN), MODULE);
    for (const [path, module] of [
      ...FAULTY,
      ['moody.ts', MOODY],
      ['slow.ts', SLOW],
      ['gated.ts', GATED],
      ['handed.ts', HANDED],
    ] as const) {
      writeFileSync(join(folder, 'plugins', path), module);
    }
    writeFileSync(join(folder, 'outside.ts'), MODULE);
    symlinkSync(join(folder, 'outside.ts'), join(folder, 'plugins/outside.ts'));
  });
  after(async () => {
    await nats[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  const nodeWith = (...paths: string[]) => ({
    plugins_dir: join(folder, 'plugins'),
    backend_plugins: paths,
  });

  it('are offered with their images, make sandboxes, and are closed at the end', async () => {
    const closed = join(folder, 'plugins/mine/closed');
    {
      await using node = await startNode({ natsUrl: nats.url, node: nodeWith(OWN) });
      const { backends } = await node.runtimes.listRuntimes({});
      expect(backends.find(({ name }) => name === OWN)).to.deep.include({
        isolates: false,
        images: ['small'],
      });
      const id = await node.acquire({ spec: { backend: OWN, image: 'small' } });
      expect((await node.sh(id, 'echo works')).out).to.equal('works\n');
      const refused = await node.acquire({ spec: { backend: OWN, image: 'big' } }).catch((error) => error);
      expect(refused).to.include({ reason: 'SANDBOX_FAILED' });
      expect(refused.message).to.contain('it has no image big');
      expect(existsSync(closed)).to.equal(false);
    }
    expect(existsSync(closed)).to.equal(true);
  });

  it('are not offered where they cannot be opened, with the reason, and stop nothing else', async () => {
    const paths = [...FAULTY.map(([path]) => path), 'gone.ts', 'outside.ts'];
    await using node = await startNode({ natsUrl: nats.url, node: nodeWith(...paths) });
    const { backends } = await node.runtimes.listRuntimes({});
    const whyOf = (path: string) => backends.find(({ name }) => name === path)?.unavailable?.message;
    for (const [path, , why] of FAULTY) expect(whyOf(path)).to.match(why);
    expect(whyOf('gone.ts')).to.contain('ENOENT');
    expect(whyOf('outside.ts')).to.contain('it lies outside of plugins_dir');
    const refused = await node.acquire({ spec: { backend: 'throws.ts' } }).catch((error) => error);
    expect(refused).to.include({ reason: 'BACKEND_UNAVAILABLE' });
    const id = await node.acquire({ spec: { backend: 'process' } });
    expect((await node.sh(id, 'echo works')).out).to.equal('works\n');
  });

  it('that fail later keep nothing else from being told, used and closed', async () => {
    const closed = join(folder, 'plugins/mine/closed');
    rmSync(closed, { force: true });
    const bus = await openBus({ url: nats.url, name: 'scheduler-of-the-test' });
    const told = Promise.withResolvers<Heartbeat>();
    bus.nc.subscribe(subjects.anyHeartbeat, {
      callback: (_error, message) => told.resolve(fromBinary(HeartbeatSchema, message.data)),
    });
    const node = await startNode({ natsUrl: nats.url, node: nodeWith('moody.ts', OWN) });
    try {
      const { offers } = await told.promise;
      const imagesOf = (path: string) => offers.find(({ backend }) => backend === path)?.images;
      expect([imagesOf('moody.ts'), imagesOf(OWN)]).to.deep.equal([[], ['small']]);
      const refused = await node.acquire({ spec: { backend: 'moody.ts' } }).catch((error) => error);
      expect(refused).to.include({ reason: 'SANDBOX_FAILED' });
    } finally {
      await bus.close();
      await node[Symbol.asyncDispose]();
    }
    expect(existsSync(closed)).to.equal(true);
  });

  it('are told which images to keep, and claim GPUs as those that they are built on', async () => {
    const devices = ['null', 'zero'].map((name, id) => ({ id: String(id), device: `/dev/${name}` }));
    const given = { ...nodeWith('handed.ts'), gpus: { devices } };
    await using node = await startNode({ natsUrl: nats.url, node: given });
    const spec = { backend: 'handed.ts', image: 'small', gpus: 1 };
    const ids = [await node.acquire({ spec, session: 'a' }), await node.acquire({ spec, session: 'b' })];
    const told = await Promise.all(ids.map((id) => node.sh(id, 'echo "$CUDA_VISIBLE_DEVICES"')));
    expect(told.map(({ out }) => out).sort()).to.deep.equal(['0\n', '1\n']);
    // Those of a container may live on when this manager does not: the next one has to know whose they were.
    const claims = JSON.parse(readFileSync(join(node.folder, `data/nodes/${node.nodeId}/gpus.json`), 'utf8'));
    expect(claims['0'].backends).to.deep.equal(['handed.ts', 'process']);
    const kept = readFileSync(join(folder, 'plugins/kept'), 'utf8');
    expect(kept).to.equal('keep small create small release small '.repeat(2));
    const refused = await node.acquire({ spec: { ...spec, gpus: 3 } }).catch((error) => error);
    expect(refused.message).to.contain('runtime.gpus: 3 are asked for, this node has 2');
  });

  it('have the limit of a command counted anew from its call on, while its files are written, too', async () => {
    const inFolder = (name: string): string => join(folder, 'plugins', name);
    await using node = await startNode({ natsUrl: nats.url, node: nodeWith('gated.ts') });
    const id = await node.acquire({ spec: { backend: 'gated.ts' } });
    const files = [{ target: '/polar/session/x', content: Buffer.from('x') }];
    const running = node.sh(id, 'sleep 3; echo whole', { timeoutMs: 2_500, files });
    await eventually('its files are written', () => existsSync(inFolder('putting')));
    const told = await node.runtimes.limitExec({ runtimeId: id, timeout: durationFromMs(60_000) });
    writeFileSync(inFolder('put'), '');
    expect(told.running).to.equal(true);
    expect(await running).to.include({ timedOut: false, out: 'whole\n' });
  });

  it('that take too long are given up, and closed when they are open at last', async () => {
    const builtIn = (): never => expect.fail('nothing is built on');
    const host = { dataDir: folder, proxy: async () => undefined, builtIn };
    const open = (openMs: number) =>
      openPlugin(join(folder, 'plugins'), 'slow.ts', host, { open: openMs, close: 50 });
    const late = await open(50);
    expect(late.state).to.have.property('unavailable');
    await late[Symbol.asyncDispose]();
    expect(existsSync(join(folder, 'plugins/closing'))).to.equal(false);
    writeFileSync(join(folder, 'plugins/open'), '');
    await eventually('it is closed', () => existsSync(join(folder, 'plugins/closing')));
    const slow = await open(10_000);
    expect(slow.state).to.have.property('backend');
    await slow[Symbol.asyncDispose]();
    expect(existsSync(join(folder, 'plugins/close'))).to.equal(false);
    writeFileSync(join(folder, 'plugins/close'), '');
  });

  it('run the tasks that name them, and tasks that name others are refused at submit', async () => {
    await using mesh = await startMesh({ node: nodeWith(OWN) });
    const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
    const runtime = { backend: OWN, image: 'small' };
    await rollout.submitTask({ spec: curlTask('by-path', 1, 1, { runtime }) });
    const [session] = await waitForEnd(rollout, 'by-path', 50_000);
    expect(session?.outcome, session?.failure?.message).to.equal(Outcome.COMPLETED);
    const spec = curlTask('elsewhere', 1, 1, { runtime: { backend: 'not/here.ts' } });
    const refused = await rollout.submitTask({ spec }).catch((error) => error);
    expect(refused.reason).to.equal('BACKEND_NOT_OFFERED');
    expect(refused.message).to.contain(OWN);
  });
});
