// A manager that is no host root: what its sandboxes are, and what it leaves.
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { apptainer, pathWithApptainer } from '../support/apptainer.ts';
import { letsNothingThrough } from '../support/host-bait.ts';
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
/** And how many processes a sandbox has where one command runs. */
const BACKENDS: readonly (readonly [string, number])[] = [
  ['bubblewrap', 2],
  ...(apptainer === undefined ? [] : [['apptainer', 2] as const]),
];
const without = whyNot();

describe('runtime-prewarm: a manager that is not root', function () {
  this.timeout(60_000);
  if (without !== undefined) {
    it(`is skipped: ${without}`);
    return;
  }
  let nats: TestNats;
  let node: TestNode;
  let manager: ChildProcess;
  const image = (name: string): string => join(node.folder, 'data/images', name);
  const giveAway = (): void => {
    if (UID !== undefined) execFileSync('chown', ['-R', '-h', `${UID}:${UID}`, node.folder]);
  };
  before(async () => {
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url, path: pathWithApptainer, start: false });
    mkdirSync(join(image('tiny'), 'etc'), { recursive: true });
    writeFileSync(join(image('tiny'), 'etc/name'), 'tiny\n');
    await copyShell(image('tiny'));
    for (const closed of ['closed', 'of-others']) {
      mkdirSync(image(closed));
      await copyShell(image(closed));
      writeFileSync(join(image(closed), 'etc/shadow'), '', { mode: 0 });
    }
    chmodSync(image('closed'), 0o555);
    giveAway();
    manager = spawnManager(node, UID);
    await managerIsReady(node);
  });
  after(async () => {
    if (manager.kill('SIGTERM')) await once(manager, 'exit');
    chmodSync(image('closed'), 0o755);
    await node[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });
  const name = 'read -r name < /etc/name; echo "$name"';

  for (const [backend, processes] of BACKENDS) {
    it(`gives each sandbox of ${backend} a copy of its image, in which root is the manager’s own user`, async () => {
      const spec = { backend, image: 'tiny' };
      const [one, two] = [await node.acquire({ spec }), await node.acquire({ spec })];
      const map = 'read -r inside outside count < /proc/self/uid_map; echo $inside $outside $count';
      const changed = await node.sh(one, `${name}; echo changed > /etc/name; pwd; ${map}`);
      expect(changed.err).to.equal('');
      const user = `0 ${UID ?? process.getuid?.()} 1`;
      expect(changed.out).to.equal(`tiny\n/polar/session/workspace\n${user}\n`);
      expect((await node.sh(two, name)).out).to.equal('tiny\n');
      expect(readFileSync(join(image('tiny'), 'etc/name'), 'utf8')).to.equal('tiny\n');
      const file = { target: '/etc/name', content: Buffer.from('put\n') };
      await node.runtimes.putFiles({ runtimeId: one, files: [file] });
      expect((await node.sh(one, name)).out).to.equal('put\n');
      const read = await node.runtimes.getFile({ runtimeId: one, path: '/etc/name' });
      expect(Buffer.from(read.content).toString()).to.equal('put\n');
      expect((await node.sh(one, 'set -- /proc/[0-9]*; echo "$# $1"')).out).to.equal(
        `${processes} /proc/1\n`,
      );
    });

    it(`copies for ${backend} what an image has closed to its owner, as /etc/shadow and its root`, async () => {
      const id = await node.acquire({ spec: { backend, image: 'closed' } });
      const { out, err } = await node.sh(id, 'pwd; echo > /new; for file in /etc/*; do echo $file; done');
      expect(out, err).to.equal('/polar/session/workspace\n/etc/shadow\n');
      expect(err).to.equal('');
    });

    it(`lets no probe through in a sandbox of ${backend}`, async () => {
      const boxes = join(node.folder, 'data/nodes/node-1/boxes');
      await letsNothingThrough(node, { backend }, (other) => join(boxes, other, 'root'));
    });
  }

  const program = apptainer;
  if (program !== undefined) {
    it('unpacks an image file of apptainer, and copies what it unpacked', async () => {
      const env = { PATH: pathWithApptainer, HOME: node.folder, APPTAINER_TMPDIR: node.folder };
      for (const one of ['tiny', 'closed']) {
        execFileSync(program, ['--silent', 'build', '--force', image(`${one}.sif`), image(one)], { env });
      }
      giveAway();
      const spec = { backend: 'apptainer', image: 'tiny.sif' };
      for (let i = 0; i < 2; i++) {
        const id = await node.acquire({ spec });
        expect((await node.sh(id, `${name}; echo changed > /etc/name`)).out).to.equal('tiny\n');
      }
      const closed = await node.acquire({ spec: { backend: 'apptainer', image: 'closed.sif' } });
      expect((await node.sh(closed, 'test -e /etc/shadow && pwd')).out).to.equal(
        '/polar/session/workspace\n',
      );
    });
  }

  it('follows no link of an image out of its copy', async () => {
    const outside = join(node.folder, 'outside');
    mkdirSync(outside);
    await copyShell(image('leads-away'));
    symlinkSync(outside, join(image('leads-away'), 'polar'));
    giveAway();
    const id = await node.acquire({ spec: { image: 'leads-away' } });
    expect((await node.sh(id, 'cd /polar/session; echo *')).out).to.equal('artifacts logs workspace\n');
    expect(readdirSync(outside)).to.deep.equal([]);
  });

  if (isHostRoot) {
    it('says which file of an image it may not read', async () => {
      chownSync(join(image('of-others'), 'etc/shadow'), 0, 0);
      const refused = await node.acquire({ spec: { image: 'of-others' } }).catch((error) => error);
      expect(refused.reason).to.equal('SANDBOX_FAILED');
      expect(refused.message).to.match(/image "of-others" cannot be copied: cp: .*shadow.*Permission denied/);
    });
  }

  if (isHostRoot) {
    it('takes no copy of an image for what a sandbox has written to a full disk', async () => {
      await using small = await startNode({ natsUrl: nats.url, start: false });
      const [root, disk] = [join(small.folder, 'data/images/large'), join(small.folder, 'data/nodes')];
      await copyShell(root, ['/bin/cat']);
      writeFileSync(join(root, 'large'), Buffer.alloc(40 << 20));
      execFileSync('chown', ['-R', '-h', `${UID}:${UID}`, small.folder]);
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=64m,uid=${UID},gid=${UID}`, 'polar-test', disk]);
      const other = spawnManager(small, UID);
      try {
        await managerIsReady(small);
        const id = await small.acquire({ spec: { image: 'large' } });
        const { bavail, bsize } = statfsSync(disk);
        writeFileSync(join(disk, 'filler'), Buffer.alloc(bavail * bsize - 256 * 1024));
        const refused = await small.sh(id, 'exit 3').catch((error) => error);
        expect(refused.message).to.contain('ENOSPC: the node');
        rmSync(join(disk, 'filler'));
        expect((await small.sh(id, 'cat /dev/zero > /all; exit 5')).exitCode).to.equal(5);
      } finally {
        if (other.kill('SIGTERM')) await once(other, 'exit');
        execFileSync('umount', ['-l', disk]);
      }
    });
  }

  it('leaves nothing after SIGKILL, in the middle of a copy, too', async () => {
    for (const [backend] of BACKENDS) {
      const id = await node.acquire({ spec: { backend, image: 'tiny' } });
      node.sh(id, NAP).catch(() => {});
    }
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
