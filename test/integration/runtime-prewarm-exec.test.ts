// Commands in sandboxes, the same for every backend that works on this machine.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { execCollected } from '../../services/common/exec.ts';
import { EXEC_OUTPUT_BYTES_MAX } from '../../services/common/limits.ts';
import { pathWithApptainer, withoutApptainer } from '../support/apptainer.ts';
import { PROGRAMS_IMAGE, type TestEngine } from '../support/container-engine.ts';
import { type EngineKind, nodeWith, PLAIN_ENGINES } from '../support/engines.ts';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  isHostRoot,
  processesWith,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';
import { sleepMark } from '../support/sleep-mark.ts';

const reasonOf = async (promise: Promise<unknown>): Promise<string> =>
  await promise.then(
    () => 'none',
    (error) => error.reason,
  );

const BACKENDS: readonly (readonly [name: string, kind?: EngineKind])[] = [
  ...(bwrapIsThere ? [['bubblewrap'] as const] : []),
  ['process'],
  ...(withoutApptainer === undefined ? [['apptainer'] as const] : []),
  ...PLAIN_ENGINES.map((kind) => [kind.backend, kind] as const),
];

for (const [backend, kind] of BACKENDS) {
  describe(`runtime-prewarm: exec with ${backend}`, () => {
    let nats: TestNats;
    let engine: TestEngine | undefined;
    let node: TestNode;
    let id: string;
    before(async function () {
      this.timeout(60_000);
      nats = await startNats();
      engine = await kind?.start();
      node = await startNode({
        natsUrl: nats.url,
        path: pathWithApptainer,
        ...(kind && engine && { node: nodeWith(kind, engine) }),
      });
    });
    after(async () => {
      await node[Symbol.asyncDispose]();
      await engine?.[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    });
    beforeEach(async () => {
      const image = engine === undefined ? '' : PROGRAMS_IMAGE;
      id = await node.acquire({ spec: { backend, image, env: { FROM_TASK: 'task', BOTH: 'task' } } });
    });
    afterEach(async () => {
      await node.runtimes.releaseRuntime({ runtimeId: id });
    });

    /** What a command waits for. */
    const letGo = async (): Promise<void> => {
      const target = '/polar/session/workspace/go';
      await node.runtimes.putFiles({ runtimeId: id, files: [{ target, content: new Uint8Array() }] });
    };

    it('hands arguments over as they are', async () => {
      const argv = ['printf', '%s|', 'a b', '$HOME', '', '"q\'', 'ü\n'];
      const { out, exitCode } = await node.sh(id, '', { argv });
      expect(out).to.equal('a b|$HOME||"q\'|ü\n|');
      expect(exitCode).to.equal(0);
    });

    it('gives input, environment and working directory', async () => {
      const script = 'cat; echo; echo "$FROM_TASK $BOTH $ADDED $DEFAULT"; pwd; echo to-stderr >&2';
      const { out, err } = await node.sh(id, script, {
        stdin: Buffer.from('input'),
        env: { BOTH: 'call', ADDED: "it's" },
        defaultEnv: { FROM_TASK: 'default', BOTH: 'default', ADDED: 'default', DEFAULT: 'default' },
        cwd: '/polar/session/logs',
      });
      const [input, env, cwd] = out.split('\n');
      expect(input).to.equal('input');
      expect(env).to.equal("task call it's default");
      expect(cwd).to.match(/\/polar\/session\/logs$/);
      expect(err).to.equal('to-stderr\n');
    });

    it('has the folders that the environment of harnesses names, and can write there', async () => {
      for (const cwd of ['artifacts', 'logs', 'logs/agent']) {
        expect((await node.sh(id, 'touch it', { cwd: `/polar/session/${cwd}` })).exitCode, cwd).to.equal(0);
      }
    });

    it('starts in the workspace, which it can write, and keeps files between commands', async () => {
      await node.sh(id, 'pwd > where; mkdir -p deep/er && echo kept > deep/er/file');
      const { out } = await node.sh(id, 'cat where deep/er/file');
      expect(out).to.match(/\/polar\/session\/workspace\nkept\n$/);
    });

    it('tells the true exit code, and 128 + N for a signal', async () => {
      const codes = [];
      for (const script of ['exit 0', 'exit 1', 'exit 137', 'kill -TERM $$', 'kill -KILL $$']) {
        codes.push((await node.sh(id, script)).exitCode);
      }
      expect(codes).to.eql([0, 1, 137, 143, 137]);
    });

    it("takes a missing program or folder for the command's own failure", async () => {
      const missing = await node.sh(id, '', { argv: ['no-such-program'] });
      const folder = await node.sh(id, 'true', { cwd: '/polar/session/nowhere' });
      expect([missing.exitCode, folder.exitCode]).to.eql([127, 126]);
      expect(missing.err).to.contain('no-such-program');
      expect(missing.empty && folder.empty).to.equal(true);
    });

    it('counts the limit of a running command anew when it is told to', async () => {
      expect(
        (await node.runtimes.limitExec({ runtimeId: id, timeout: durationFromMs(50) })).running,
      ).to.equal(false);
      const nap = sleepMark();
      const running = node.sh(id, `echo begun > begun; ${nap}`, { timeoutMs: 60_000 });
      await eventually('it runs', () => processesWith(nap).length > 0);
      const { running: told } = await node.runtimes.limitExec({ runtimeId: id, timeout: durationFromMs(50) });
      expect(told).to.equal(true);
      expect(await running).to.include({ timedOut: true, empty: true });
      const longer = node.sh(id, 'sleep 2.5; echo whole', { timeoutMs: 2_000 });
      await eventually('it has more time', async () => {
        const { running } = await node.runtimes.limitExec({ runtimeId: id, timeout: durationFromMs(60_000) });
        return running;
      });
      expect(await longer).to.include({ timedOut: false, out: 'whole\n' });
      const bad = node.runtimes.limitExec({ runtimeId: id });
      expect(await reasonOf(bad)).to.equal('INVALID_REQUEST');
    });

    it('kills the whole tree at the limit, and proves it', async () => {
      const nap = sleepMark();
      const script = `setsid ${nap} & (${nap} &) ; trap "" TERM HUP INT; ${nap}`;
      const result = await node.sh(id, script, { timeoutMs: 400 });
      expect(result.timedOut).to.equal(true);
      expect(result.exitCode).to.equal(137);
      expect(result.empty).to.equal(true);
      expect(Number(result.wallMs)).to.be.at.least(400);
      expect(processesWith(nap)).to.eql([]);
    });

    it('leaves nothing of a command behind that ends by itself', async () => {
      const nap = sleepMark();
      const result = await node.sh(id, `setsid ${nap} >/dev/null 2>&1 & (${nap} &); echo done`);
      expect(result.out).to.equal('done\n');
      expect(result.empty).to.equal(true);
      expect(processesWith(nap)).to.eql([]);
      expect((await node.sh(id, 'echo again')).out).to.equal('again\n');
    });

    it('kills the tree when the caller leaves', async () => {
      const leave = new AbortController();
      const nap = sleepMark();
      const input = {
        runtimeId: id,
        argv: ['sh', '-c', `setsid ${nap} & ${nap}`],
        timeoutMs: 60_000,
      };
      const call = execCollected(node.runtimes, input, leave.signal);
      await eventually('the command runs', () => processesWith(nap).length >= 2);
      leave.abort(new Error('gone'));
      await call.catch(() => {});
      await eventually('all are dead', () => processesWith(nap).length === 0);
      expect((await node.sh(id, 'echo free')).out).to.equal('free\n');
    });

    it('takes the next command at once when the caller of one has left', async () => {
      const leave = new AbortController();
      const nap = sleepMark();
      const input = { runtimeId: id, argv: ['sh', '-c', nap], timeoutMs: 60_000 };
      const call = execCollected(node.runtimes, input, leave.signal);
      await eventually('the command runs', () => processesWith(nap).length > 0);
      leave.abort(new Error('gone'));
      await call.catch(() => {});
      expect((await node.sh(id, 'echo free')).out).to.equal('free\n');
      expect(processesWith(nap)).to.eql([]);
    });

    it('runs one command at a time', async () => {
      const nap = sleepMark();
      const first = node.sh(id, `until [ -e go ]; do sleep 0.05; done; echo first ${nap}`);
      await eventually('the command runs', () => processesWith(nap).length > 0);
      expect(await reasonOf(node.sh(id, 'echo second'))).to.equal('RUNTIME_BUSY');
      await letGo();
      expect((await first).out).to.equal(`first ${nap}\n`);
    });

    it('sends output as it is written', async () => {
      const said: string[] = [];
      const argv = ['sh', '-c', 'echo one; until [ -e go ]; do sleep 0.05; done; echo two'];
      for await (const { event } of node.runtimes.exec({ runtimeId: id, argv })) {
        if (event.case !== 'stdout') continue;
        said.push(Buffer.from(event.value).toString());
        if (said.length === 1) await letGo();
      }
      expect(said).to.eql(['one\n', 'two\n']);
    });

    it('lets scripts open their output again by name', async () => {
      const script = 'echo one > /dev/stdout; echo two > /dev/stderr; echo three | tee /dev/stderr';
      const { out, err, exitCode } = await node.sh(id, script);
      expect([out, err, exitCode]).to.eql(['one\nthree\n', 'two\nthree\n', 0]);
    });

    it('keeps the first and the last 2 MiB of each stream and counts the rest', async () => {
      const extra = 1_000_000;
      const more = EXEC_OUTPUT_BYTES_MAX + 7;
      const script = `head -c ${EXEC_OUTPUT_BYTES_MAX + extra - 6} /dev/zero; echo ended; head -c ${more} /dev/zero >&2`;
      const result = await node.sh(id, script);
      expect(result.out.length).to.equal(EXEC_OUTPUT_BYTES_MAX);
      expect(result.out.endsWith('\0ended\n')).to.equal(true);
      expect(result.err.length).to.equal(EXEC_OUTPUT_BYTES_MAX);
      expect(Number(result.droppedOutputBytes)).to.equal(extra + 7);
      expect(Number(result.droppedStderrBytes)).to.equal(7);
      expect(result.exitCode).to.equal(0);
    });

    it('refuses what is no command, and an unknown runtime', async () => {
      const bad = async (more: object): Promise<string> => await reasonOf(node.sh(id, 'true', more));
      expect(await bad({ argv: [] })).to.equal('INVALID_REQUEST');
      expect(await bad({ cwd: 'relative' })).to.equal('UNSAFE_PATH');
      expect(await bad({ env: { 'A B': 'x' } })).to.equal('INVALID_REQUEST');
      expect(await bad({ argv: ['echo', 'x'.repeat(200_000)] })).to.equal('INVALID_REQUEST');
      expect(await bad({ argv: Array(30).fill('x'.repeat(100_000)) })).to.equal('INVALID_REQUEST');
      expect(await bad({ argv: Array(20_000).fill('x') })).to.equal('INVALID_REQUEST');
      const variables = Object.fromEntries(Array.from({ length: 4_000 }, (_, i) => [`V${i}`, 'x']));
      expect(await bad({ argv: ['env'], env: variables })).to.equal('INVALID_REQUEST');
      expect(await bad({ runtimeId: 'rt-none' })).to.equal('RUNTIME_LOST');
    });

    it('moves files in and out, and replaces links instead of following them', async () => {
      const target = '/polar/session/workspace/a/b.sh';
      const content = Buffer.from('#!/bin/sh\necho ran\n');
      await node.runtimes.putFiles({ runtimeId: id, files: [{ target, content, mode: 0o755 }] });
      expect((await node.sh(id, './a/b.sh; stat -c %a a/b.sh; echo more >> a/b.sh')).out).to.equal(
        'ran\n755\n',
      );
      const read = await node.runtimes.getFile({ runtimeId: id, path: target });
      expect(Buffer.from(read.content).toString()).to.equal(`${content}more\n`);
      await node.sh(id, 'echo original > keep; ln -s keep link');
      const link = '/polar/session/workspace/link';
      await node.runtimes.putFiles({ runtimeId: id, files: [{ target: link, content: Buffer.from('new') }] });
      expect((await node.sh(id, 'cat keep; cat link')).out).to.equal('original\nnew');
    });

    it('never leaves the sandbox, whatever links an agent plants', async () => {
      const outside = join(node.folder, 'outside');
      mkdirSync(outside, { recursive: true });
      writeFileSync(join(outside, 'secret'), 'secret');
      await node.sh(
        id,
        `ln -s ${outside} abs; ln -s ../../../../../../../../../..${outside} rel; ln -s / top; mkfifo pipe`,
      );
      const get = (path: string): Promise<string> =>
        reasonOf(node.runtimes.getFile({ runtimeId: id, path: `/polar/session/workspace/${path}` }));
      const put = async (path: string): Promise<string> =>
        await reasonOf(
          node.runtimes.putFiles({
            runtimeId: id,
            files: [{ target: `/polar/session/workspace/${path}`, content: Buffer.from('x') }],
          }),
        );
      for (const path of ['abs/secret', 'rel/secret', `top${outside}/secret`]) {
        expect(await get(path), path).to.be.oneOf(['NOT_FOUND', 'UNSAFE_PATH']);
      }
      for (const path of ['abs/new', 'rel/new', `top${outside}/new2`]) await put(path);
      expect(readdirSync(outside)).to.eql(['secret']);
      expect(await get('pipe')).to.equal('UNSAFE_PATH');
      expect(await get('../../../../etc/passwd')).to.equal('UNSAFE_PATH');
      expect(await put('../../../../../tmp/polar-escape')).to.equal('UNSAFE_PATH');
      expect(existsSync('/tmp/polar-escape')).to.equal(false);
      expect(await get('none')).to.equal('NOT_FOUND');
    });

    it('shows folders of the cache read-only, and nothing else of the host', async () => {
      const tool = join(node.folder, 'data/cache/harness/tool/1.0');
      mkdirSync(tool, { recursive: true });
      writeFileSync(join(tool, 'run'), 'echo "tool $1"', { mode: 0o755 });
      const mounts = [{ source: tool, target: '/opt/polar/harness/tool' }];
      const used = await node.sh(id, 'sh /opt/polar/harness/tool/run x; touch /opt/polar/harness/tool/new', {
        mounts,
      });
      expect(used.out).to.equal('tool x\n');
      expect(existsSync(join(tool, 'new'))).to.equal(backend === 'process' && !isHostRoot);
      for (const source of ['/etc', node.folder, join(tool, '../../../../..')]) {
        const refused = reasonOf(node.sh(id, 'true', { mounts: [{ source, target: '/opt/x' }] }));
        expect(await refused, source).to.equal('UNSAFE_PATH');
      }
      const hiding = reasonOf(node.sh(id, 'true', { mounts: [{ source: tool, target: '/proc/x' }] }));
      expect(await hiding).to.equal('UNSAFE_PATH');
    });

    it('reaches the LLM proxy at the address that it tells', async () => {
      const { runtimes } = await node.runtimes.listRuntimes({});
      const url = runtimes.find(({ runtimeId }) => runtimeId === id)?.proxyUrl;
      const { out } = await node.sh(id, `curl -sS ${url}/from-${backend}`, { proxyAccess: true });
      expect(out).to.equal('from the proxy');
      expect(node.proxied).to.include(`/from-${backend}`);
    });

    it('never runs as root of the host, nor with its environment', async () => {
      process.env['POLAR_TEST_SECRET'] = 'bait-5f1c';
      const { out } = await node.sh(
        id,
        'cat /proc/self/uid_map; id -u; env; cat /proc/1/environ | tr "\\0" "\\n"',
      );
      const [map = '', uid = ''] = out.split('\n');
      const [inside, outside] = map.trim().split(/\s+/).map(Number);
      expect(Number(uid) - inside! + outside!).to.not.equal(0);
      expect(out).to.not.contain('bait-5f1c');
    });
  });
}
