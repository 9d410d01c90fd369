// Runtime apptainer, beside what exec and guardian try with it: what a sandbox cannot reach, images of its own format, layers.
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { letsNothingThrough } from '../support/host-bait.ts';
import { copyShell } from '../support/image.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { eventually, processesWith, startNode, type TestNode } from '../support/runtime-prewarm.ts';
import { makeRoot, makeSif } from '../support/sif.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const IMAGES = 'data/images';
const UNPACKED = 'data/nodes/node-1/unpacked';
const [SYS_PIDFD_OPEN, SYS_PIDFD_GETFD] = [434, 438];
/** Takes a moment to be unpacked. */
const LARGE_BYTES = 256 << 20;
const READ_NAME = 'read -r name < /etc/name; echo "$name"';
const backend = 'apptainer';
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });

/** Writes where a command is told to have started, as a socket of the first process. */
const TELL = `import ctypes, os, sys
call = ctypes.CDLL(None).syscall
fd = call(${SYS_PIDFD_GETFD}, call(${SYS_PIDFD_OPEN}, 1, 0), 3, 0)
os.write(fd, sys.argv[1].encode() * int(sys.argv[2]))`;

const programOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim();

describe('runtime-prewarm: apptainer', function () {
  this.timeout(60_000);
  if (withoutApptainer !== undefined) {
    it(`is skipped: ${withoutApptainer}`);
    return;
  }
  let nats: TestNats;
  let node: TestNode;
  before(async () => {
    nats = await startNats();
    node = await startNode({ natsUrl: nats.url, path: pathWithApptainer });
  });
  after(async () => {
    await node[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  for (const [what, spec] of Object.entries({
    'a sandbox': { backend },
    'a clone of a layer': { backend, prepare: [exec('true')] },
  })) {
    it(`lets no probe through in ${what}`, async () => {
      await letsNothingThrough(node, spec, (other) =>
        join(node.folder, 'data/nodes/node-1/boxes', other, 'root'),
      );
    });
  }

  it('ends a command that hits its memory limit, and says so', async () => {
    const id = await node.acquire({ spec: { backend, memoryMb: 128 } });
    const { outOfMemory, exitCode, empty } = await node.sh(id, 'exec python3 -c "x = bytearray(1 << 30)"');
    expect({ outOfMemory, exitCode, empty }).to.deep.equal({ outOfMemory: true, exitCode: 137, empty: true });
  });

  it('believes no command that tells of itself where it is told to have started', async () => {
    const id = await node.acquire({ spec: { backend } });
    for (const [what, times] of [
      ['{"exit-code": 77}', 1],
      ['{no JSON}', 1],
      ['x', 1_000_000],
    ] as const) {
      const told = await node.sh(id, `python3 -ISc '${TELL}' '${what}' ${times} 2> /dev/null; exit 3`);
      expect(told.exitCode, what).to.equal(3);
    }
  });

  it('shows what is mounted below a folder of the host as read-only, too', async () => {
    const below = mkdtempSync('/usr/local/share/polar-test-below-');
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0777,size=1m', 'polar-test', below]);
      const id = await node.acquire({ spec: { backend } });
      const { out } = await node.sh(id, `test -d ${below} && (touch ${below}/new 2> /dev/null; echo $?)`);
      expect(out).to.equal('1\n');
    } finally {
      execFileSync('umount', [below]);
      rmSync(below, { recursive: true });
    }
  });

  it('takes it for the command’s own failure that an earlier one has left no shell', async () => {
    const codes: number[] = [];
    for (const left of [
      'true',
      'mkdir /bin; ln -s sh /bin/sh',
      'mkdir /bin; echo "#!/none" > /bin/sh; chmod +x /bin/sh',
    ]) {
      const id = await node.acquire({ spec: { backend } });
      await node.sh(id, `rm /bin; ${left}`);
      codes.push((await node.sh(id, 'exit 0')).exitCode);
    }
    expect(codes).to.eql([127, 126, 127]);
  });

  it('runs on where an earlier command has made /etc a link to nowhere', async () => {
    const id = await node.acquire({ spec: { backend } });
    await node.sh(id, 'mv /etc /other; ln -s /none/there /etc');
    const { out } = await node.sh(id, 'readlink /etc; head -n 1 /other/group');
    expect(out).to.equal('/none/there\nroot:x:0:\n');
  });

  it('runs an image of its own format, which is unpacked once, and what it sets', async () => {
    await makeSif(join(node.folder, IMAGES, 'tiny.sif'), 'tiny');
    const spec = { backend, image: 'tiny.sif' };
    const [one, two] = await Promise.all([node.acquire({ spec }), node.acquire({ spec })]);
    const changed = await node.sh(one, `${READ_NAME}; echo changed > /etc/name; echo "$OF_IMAGE"`);
    expect(changed).to.include({ out: 'tiny\ntiny\n', err: '', exitCode: 0 });
    expect((await node.sh(two, READ_NAME)).out).to.equal('tiny\n');
    const file = await node.runtimes.getFile({ runtimeId: one, path: '/etc/name' });
    expect(Buffer.from(file.content).toString()).to.equal('changed\n');
    expect(readdirSync(join(node.folder, UNPACKED)).map((name) => name.split('@')[0])).to.eql(['tiny.sif']);
  });

  it('unpacks an image with devices, and with owners that no sandbox has', async () => {
    await makeSif(join(node.folder, IMAGES, 'odd.sif'), 'odd', (root) => {
      mkdirSync(join(root, 'dev'));
      execFileSync('mknod', [join(root, 'dev/console'), 'c', '5', '1']);
      for (const [file, owner] of [
        ['far', 1_516_583_083],
        ['near', 1_000],
      ] as const) {
        writeFileSync(join(root, file), '');
        chownSync(join(root, file), owner, owner);
      }
      symlinkSync('/etc/name', join(root, 'link'));
    });
    const id = await node.acquire({ spec: { backend, image: 'odd.sif' } });
    expect((await node.sh(id, 'read -r name < /link; echo "$name"')).out).to.equal('odd\n');
    const shelf = join(node.folder, UNPACKED);
    const unpacked = readdirSync(shelf).find((name) => name.startsWith('odd.sif@')) ?? '';
    const owners = ['far', 'near'].map((file) => statSync(join(shelf, unpacked, file)).uid);
    expect(owners).to.eql([200_000, 201_000]);
  });

  it('leaves nothing of an unpacking that was killed', async () => {
    const image = 'killed.sif';
    await makeSif(join(node.folder, IMAGES, image), 'killed', (root) => {
      writeFileSync(join(root, 'large'), Buffer.alloc(LARGE_BYTES, 'x'));
    });
    const before = readdirSync(join(node.folder, UNPACKED));
    const refused = node.acquire({ spec: { backend, image } }).catch((error) => error);
    const unpackers = (): number[] => processesWith(image).filter((pid) => programOf(pid) === 'unsquashfs');
    await eventually('it is being unpacked', () => unpackers().length > 0);
    for (const pid of unpackers()) process.kill(pid, 'SIGKILL');
    expect((await refused).reason).to.equal('SANDBOX_FAILED');
    expect(readdirSync(join(node.folder, UNPACKED))).to.eql(before);
  });

  it('unpacks an image anew that was replaced', async () => {
    const spec = { backend, image: 'replaced.sif' };
    for (const name of ['first', 'second']) {
      await makeSif(join(node.folder, IMAGES, 'replaced.sif'), name);
      expect((await node.sh(await node.acquire({ spec }), READ_NAME)).out).to.equal(`${name}\n`);
    }
  });

  it('lies on the image that was prepared where that is replaced or removed meanwhile', async () => {
    const images = join(node.folder, IMAGES);
    await makeSif(join(images, 'other.sif'), 'other');
    for (const replaced of [true, false]) {
      const image = `changing-${replaced}.sif`;
      await makeSif(join(images, image), 'prepared');
      const nap = sleepMark(2);
      const spec = { backend, image, prepare: [exec(nap)] };
      const acquired = ['s-1', 's-2'].map((session) => node.acquire({ spec, session }));
      await eventually('it is being prepared', () => processesWith(nap).length > 0);
      if (replaced) renameSync(join(images, 'other.sif'), join(images, image));
      else rmSync(join(images, image));
      for (const id of await Promise.all(acquired)) {
        expect((await node.sh(id, READ_NAME)).out).to.equal('prepared\n');
      }
    }
  });

  it('leaves alone what sandboxes of another node with the same images lie on', async () => {
    const spec = { backend, image: 'shared.sif' };
    const images = join(node.folder, IMAGES);
    await makeSif(join(images, 'shared.sif'), 'before');
    const id = await node.acquire({ spec });
    await makeSif(join(images, 'shared.sif'), 'after');
    await using other = await startNode({
      natsUrl: nats.url,
      path: pathWithApptainer,
      node: { id: 'node-2', images_dir: images },
    });
    expect((await other.sh(await other.acquire({ spec }), READ_NAME)).out).to.equal('after\n');
    expect((await node.sh(id, READ_NAME)).out).to.equal('before\n');
  });

  it('gives a command what its shell lets it have, and the libraries of its image', async () => {
    const root = mkdtempSync(join(tmpdir(), 'polar-test-bash-'));
    try {
      await makeRoot(root, 'bash');
      await copyShell(root, ['/bin/bash', '/usr/bin/env']);
      renameSync(join(root, 'bin/bash'), join(root, 'bin/sh'));
      writeFileSync(join(root, '.singularity.d/env/10-own.sh'), 'export LD_LIBRARY_PATH=/opt/own\n');
      cpSync(root, join(node.folder, IMAGES, 'bash'), { recursive: true });
    } finally {
      rmSync(root, { recursive: true });
    }
    const id = await node.acquire({ spec: { backend, image: 'bash' } });
    const { out, err } = await node.sh(id, '', { argv: ['env'], env: { UID: '5', MORE: 'more' } });
    expect(err).to.equal('');
    expect(out.split('\n')).to.include.members(['LD_LIBRARY_PATH=/opt/own', 'MORE=more']);
  });

  it('lays prepared layers over images', async () => {
    await makeSif(join(node.folder, IMAGES, 'base.sif'), 'base');
    const prepare = [exec('echo prepared > /etc/name; rm /.singularity.d/env/*')];
    const spec = { backend, image: 'base.sif', prepare };
    for (let clone = 0; clone < 2; clone++) {
      const id = await node.acquire({ spec });
      expect((await node.sh(id, `${READ_NAME}; echo "-$OF_IMAGE-"`)).out).to.equal('prepared\n--\n');
    }
  });

  it('runs a folder of the images as bubblewrap does', async () => {
    await makeRoot(join(node.folder, IMAGES, 'folder'), 'folder');
    const id = await node.acquire({ spec: { backend, image: 'folder' } });
    expect((await node.sh(id, READ_NAME)).out).to.equal('folder\n');
  });

  it('refuses an image that is not there, and one that cannot be read', async () => {
    const refusal = (image: string) =>
      node.acquire({ spec: { backend, image } }).then(
        () => undefined,
        (error) => error,
      );
    expect(await refusal('none.sif')).to.include({ reason: 'IMAGE_NOT_FOUND' });
    writeFileSync(join(node.folder, IMAGES, 'broken.sif'), 'no image at all');
    const broken = await refusal('broken.sif');
    expect(broken.reason).to.equal('SANDBOX_FAILED');
    expect(broken.message).to.contain('image "broken.sif" cannot be unpacked: it is no SIF file');
    const torn = readFileSync(join(node.folder, IMAGES, 'base.sif'));
    writeFileSync(join(node.folder, IMAGES, 'torn.sif'), torn.subarray(0, torn.length / 2));
    expect((await refusal('torn.sif')).message).to.contain('FATAL');
    expect(readdirSync(join(node.folder, UNPACKED)).filter((name) => /broken|torn/.test(name))).to.eql([]);
  });
});
