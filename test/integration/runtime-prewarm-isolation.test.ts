// What a sandbox of bubblewrap cannot see or do, tried from the inside; its limits.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { letsNothingThrough } from '../support/host-bait.ts';
import { copyShell } from '../support/image.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import { bwrapIsThere, isHostRoot, startNode, type TestNode } from '../support/runtime-prewarm.ts';

if (bwrapIsThere) {
  describe('runtime-prewarm: isolation with bubblewrap', () => {
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

    const prepare = [{ step: { case: 'exec' as const, value: { command: 'true' } } }];
    for (const [what, spec] of [
      ['a sandbox', {}],
      ['a clone of a layer', { prepare }],
    ] as const) {
      it(`lets no probe through in ${what}`, async () => {
        await letsNothingThrough(node, spec, (other) =>
          join(node.folder, 'data/nodes/node-1/boxes', other, 'root'),
        );
      });
    }

    it('has no network at all without proxy access', async () => {
      const id = await node.acquire();
      const { out } = await node.sh(id, 'curl -sS -m 2 http://127.0.0.1:4141/ 2>&1; echo "exit $?"');
      expect(out).to.match(/exit 7\n$/);
    });

    it('counts connections that the LLM proxy did not take', async () => {
      await using alone = await startNode({ natsUrl: nats.url, proxy: false });
      const id = await alone.acquire();
      const script = 'curl -sS http://127.0.0.1:4141/ || curl -sS http://127.0.0.1:4141/; true';
      const result = await alone.sh(id, script, { proxyAccess: true });
      expect([result.proxyConnectFailures, result.proxyAway]).to.deep.equal([2, true]);
      expect(result.exitCode).to.equal(0);
    });

    it('says that the LLM proxy was away at the last try, whichever way that went', async () => {
      await using alone = await startNode({ natsUrl: nats.url, proxy: false });
      const id = await alone.acquire({ spec: { network: { egress: [{ host: 'example.org' }] } } });
      const tried = async (script: string): Promise<boolean> =>
        (await alone.sh(id, script, { proxyAccess: true })).proxyAway;
      expect(await tried('true')).to.equal(false);
      expect(await tried('curl -sS -m 0.3 http://127.0.0.1:4141/; true')).to.equal(true);
      const byEgress = 'curl -sS -m 9 --noproxy "" -x http://127.0.0.1:4142 http://127.0.0.1:4141/; true';
      expect(await tried(byEgress)).to.equal(true);
    });

    it('tells a sandbox that cannot start from a command that fails', async () => {
      const id = await node.acquire();
      const broken = await node.acquire();
      rmSync(join(node.folder, 'data/nodes/node-1/boxes', broken, 'root'), { recursive: true });
      const error = await node.sh(broken, 'true').catch((reason) => reason);
      expect(error.reason).to.equal('SANDBOX_FAILED');
      expect(error.message).to.contain('bwrap');
      expect((await node.sh(id, 'exit 1')).exitCode).to.equal(1);
    });

    it('follows no link that an agent leaves where something of the host is shown', async () => {
      const outside = mkdtempSync(join(tmpdir(), 'polar-test-outside-'));
      chmodSync(outside, 0o777);
      try {
        const id = await node.acquire();
        const links = `mv /etc /old; ln -s /oldroot${outside} /etc; ln -s ${outside} /opt/link; echo > /opt/file`;
        expect((await node.sh(id, links)).exitCode).to.equal(0);
        const source = join(node.folder, 'data/cache');
        mkdirSync(join(source, 'installed'), { recursive: true });
        const mounts = [{ source, target: '/opt/link/below' }];
        const { out, err, exitCode } = await node.sh(id, 'ls -d /etc/ssl/certs /opt/link/below/installed', {
          mounts,
        });
        expect([out, err, exitCode]).to.eql(['/etc/ssl/certs\n/opt/link/below/installed\n', '', 0]);
        const nowhere = [{ source, target: '/opt/file/below' }];
        const refused = await node.sh(id, 'true', { mounts: nowhere }).catch((error) => error);
        expect(refused.reason, refused.message).to.equal('UNSAFE_PATH');
        expect(readdirSync(outside)).to.eql([]);
      } finally {
        rmSync(outside, { recursive: true });
      }
    });

    if (isHostRoot) {
      it('ends a command that hits its memory limit, and says so', async () => {
        const id = await node.acquire({ spec: { memoryMb: 64 } });
        const script = "python3 -c 'a = bytearray(200 << 20)'; echo survived; sleep 20";
        const result = await node.sh(id, script);
        expect(result.outOfMemory).to.equal(true);
        expect(result.empty).to.equal(true);
        expect(result.exitCode).to.equal(137);
        expect(Number(result.peakMemoryBytes)).to.be.within(32 << 20, 70 << 20);
        expect(result.timedOut).to.equal(false);
      });

      it('survives a fork bomb, and proves that nothing of it is left', async () => {
        const id = await node.acquire();
        const script = 'f() { f & f & sleep 5; }; (f) 2>/dev/null; while :; do :; done';
        const result = await node.sh(id, script, { timeoutMs: 1_500 });
        expect(result.timedOut).to.equal(true);
        expect(result.empty).to.equal(true);
        expect((await node.sh(id, 'echo alive')).out).to.equal('alive\n');
      });

      it('runs root file systems from the images folder, and keeps them as they are', async () => {
        const image = join(node.folder, 'data/images/tiny');
        mkdirSync(join(image, 'etc'), { recursive: true });
        writeFileSync(join(image, 'etc/name'), 'tiny\n');
        await copyShell(image);
        const [one, two] = [
          await node.acquire({ spec: { image: 'tiny' } }),
          await node.acquire({ spec: { image: 'tiny' } }),
        ];
        const changed = await node.sh(
          one,
          'read -r name < /etc/name; echo "$name"; echo changed > /etc/name; pwd',
        );
        expect(changed.out).to.equal('tiny\n/polar/session/workspace\n');
        expect((await node.sh(two, 'read -r name < /etc/name; echo "$name"')).out).to.equal('tiny\n');
        expect((await node.sh(one, 'read -r name < /etc/name; echo "$name"')).out).to.equal('changed\n');
        expect(readFileSync(join(image, 'etc/name'), 'utf8')).to.equal('tiny\n');
        await node.runtimes.putFiles({
          runtimeId: one,
          files: [{ target: '/etc/name', content: Buffer.from('put\n') }],
        });
        const read = await node.runtimes.getFile({ runtimeId: one, path: '/etc/name' });
        expect(Buffer.from(read.content).toString()).to.equal('put\n');
        expect((await node.sh(one, 'read -r name < /etc/name; echo "$name"')).out).to.equal('put\n');
        // Each move holds the root for itself: the others wait for it.
        const put = (name: string) =>
          node.runtimes.putFiles({
            runtimeId: two,
            files: [{ target: `/tmp/${name}`, content: Buffer.from(name) }],
          });
        await Promise.all(['a', 'b', 'c'].map(put));
        expect((await node.sh(two, 'cd /tmp; echo *')).out).to.equal('a b c\n');
      });

      it('takes a root file system that was replaced as one of its own users', async () => {
        const image = join(node.folder, 'data/images/replaced');
        for (const version of ['first', 'second']) {
          rmSync(image, { recursive: true, force: true });
          await copyShell(image);
          mkdirSync(join(image, 'srv'));
          writeFileSync(join(image, 'srv/name'), `${version}\n`);
          const id = await node.acquire({ spec: { image: 'replaced' } });
          // Owned by nobody there, neither could be changed.
          const script = 'read -r name < /srv/name; echo "$name"; echo changed > /srv/name && : > /srv/new';
          const { out, err, exitCode } = await node.sh(id, script);
          expect({ out, err, exitCode }).to.deep.equal({ out: `${version}\n`, err: '', exitCode: 0 });
        }
      });
    }

    it('refuses an image that is not there, by name', async () => {
      const error = await node.acquire({ spec: { image: 'no-such' } }).catch((reason) => reason);
      expect(error.reason).to.equal('IMAGE_NOT_FOUND');
      expect(error.message).to.contain('"no-such"');
      const upward = await node.acquire({ spec: { image: '../boxes' } }).catch((reason) => reason);
      expect(upward).to.include({ reason: 'INVALID_REQUEST' });
      expect(upward.fields[0]).to.include({ field: 'spec.image' });
    });
  });
}
