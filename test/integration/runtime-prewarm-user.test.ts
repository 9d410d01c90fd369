// A manager that is no host root: what its sandboxes are, and what it leaves.
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { copyShell } from '../support/image.ts';
import { leftoversOfNode } from '../support/leftovers.ts';
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
import { sleepMark } from '../support/sleep-mark.ts';

const NAP = sleepMark();
/** Of nobody, where the tests are root's. */
const UID = isHostRoot ? 65_534 : undefined;
const without = whyNot();

describe(`runtime-prewarm: a manager that is not root${without === undefined ? '' : ` (skipped: ${without})`}`, function () {
  this.timeout(60_000);
  let nats: TestNats;
  let node: TestNode;
  let manager: ChildProcess;
  const image = (name: string): string => join(node.folder, 'data/images', name);
  before(async function () {
    if (without !== undefined) return this.skip();
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url, start: false });
    mkdirSync(join(image('tiny'), 'etc'), { recursive: true });
    writeFileSync(join(image('tiny'), 'etc/name'), 'tiny\n');
    await copyShell(image('tiny'));
    mkdirSync(image('closed'));
    writeFileSync(join(image('closed'), 'shadow'), '', { mode: 0 });
    if (UID !== undefined) execFileSync('chown', ['-R', `${UID}:${UID}`, node.folder]);
  });
  beforeEach(async () => {
    manager = spawnManager(node, UID);
    await managerIsReady(node);
  });
  afterEach(async () => {
    if (manager.kill('SIGTERM')) await once(manager, 'exit');
  });
  after(async () => {
    await node?.[Symbol.asyncDispose]();
    await nats?.[Symbol.asyncDispose]();
  });
  const name = 'read -r name < /etc/name; echo "$name"';

  it('gives each sandbox a copy of its image, in which root is the manager’s own user', async () => {
    const [one, two] = [
      await node.acquire({ spec: { image: 'tiny' } }),
      await node.acquire({ spec: { image: 'tiny' } }),
    ];
    const changed = await node.sh(
      one,
      `${name}; echo changed > /etc/name; pwd; read -r map < /proc/self/uid_map; echo $map`,
    );
    const map = `0 ${UID ?? process.getuid?.()} 1`;
    expect(changed.err).to.equal('');
    expect(changed.out).to.equal(`tiny\n/polar/session/workspace\n${map}\n`);
    expect((await node.sh(two, name)).out).to.equal('tiny\n');
    expect(readFileSync(join(image('tiny'), 'etc/name'), 'utf8')).to.equal('tiny\n');
    const file = { target: '/etc/name', content: Buffer.from('put\n') };
    await node.runtimes.putFiles({ runtimeId: one, files: [file] });
    expect((await node.sh(one, name)).out).to.equal('put\n');
    const read = await node.runtimes.getFile({ runtimeId: one, path: '/etc/name' });
    expect(Buffer.from(read.content).toString()).to.equal('put\n');
    expect((await node.sh(one, 'set -- /proc/[0-9]*; echo "$# $1"')).out).to.equal('2 /proc/1\n');
  });

  it('follows no link of an image out of its copy', async () => {
    const outside = join(node.folder, 'outside');
    mkdirSync(outside);
    await copyShell(image('leads-away'));
    symlinkSync(outside, join(image('leads-away'), 'polar'));
    if (UID !== undefined) execFileSync('chown', ['-R', '-h', `${UID}:${UID}`, node.folder]);
    const id = await node.acquire({ spec: { image: 'leads-away' } });
    expect((await node.sh(id, 'cd /polar/session; echo *')).out).to.equal('artifacts logs workspace\n');
    expect(readdirSync(outside)).to.deep.equal([]);
  });

  it('says which file of an image it may not read', async () => {
    const refused = await node.acquire({ spec: { image: 'closed' } }).catch((error) => error);
    expect(refused.reason).to.equal('SANDBOX_FAILED');
    expect(refused.message).to.match(/image "closed" cannot be copied: cp: .*shadow.*Permission denied/);
  });

  it('leaves nothing after SIGKILL, in the middle of a copy, too', async () => {
    const id = await node.acquire({ spec: { image: 'tiny' } });
    node.sh(id, NAP).catch(() => {});
    for (let i = 0; i < 4; i++) node.acquire({ spec: { image: 'tiny' } }).catch(() => {});
    manager.kill('SIGKILL');
    await once(manager, 'exit');
    const left = (): string[] => leftoversOfNode(join(node.folder, 'data/nodes/node-1'), [NAP]);
    await eventually(
      () => `nothing is left: ${left()}`,
      () => left().length === 0,
    );
  });
});

function whyNot(): string | undefined {
  if (!bwrapIsThere) return 'no bwrap';
  if (UID === undefined) return undefined;
  const tried = spawnSync(
    'bwrap',
    ['--unshare-user', '--ro-bind', '/', '/', 'test', '-r', import.meta.filename],
    {
      ...{ uid: UID, gid: UID },
      encoding: 'utf8',
    },
  );
  if (tried.status === 0) return undefined;
  return tried.stderr.trim() || 'this folder is closed to other users';
}
