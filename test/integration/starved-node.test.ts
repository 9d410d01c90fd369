// A node that is out of memory, though no sandbox has reached its own limit: no harness is to blame.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { execCollected } from '../../services/common/exec.ts';
import { proxySocketOf } from '../../services/common/proxy-socket.ts';
import { OwnTime } from '../../services/evaluator/plugins/own-time.ts';
import { answerOf } from '../../services/evaluator/plugins/plugin.ts';
import { findHierarchies } from '../../services/runtime-prewarm/containment/hierarchies.ts';
import { instanceOf } from '../../services/runtime-prewarm/host/host.ts';
import { eventually } from '../support/eventually.ts';
import { newRef, type RuntimeInit, startNode, type TestNode } from '../support/node.ts';
import { bwrapIsThere, isHostRoot } from '../support/runtime-prewarm.ts';
import { startStandInProxy } from '../support/stand-in-proxy.ts';

const WAIT_MS = 20_000;
const NODE_MIB = 128;
const TAKE = 'python3 -c "x = bytearray(512 << 20)" 2> /dev/null';
const { points, v2 } = findHierarchies();
const memory = points.get('memory');

if (isHostRoot && memory !== undefined) {
  it('a node without memory is to blame where its kernel ends an evaluator plug-in', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-starved-'));
    const group = join(memory, basename(folder));
    mkdirSync(group);
    try {
      const limits = ['memory.max', 'memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'];
      for (const limit of limits.map((name) => join(group, name)).filter(existsSync)) {
        writeFileSync(limit, String(NODE_MIB << 20));
      }
      const module = join(folder, 'takes.mjs');
      const joins = `(await import('node:fs')).writeFileSync(${JSON.stringify(join(group, 'cgroup.procs'))}, '0');`;
      const takes = `${joins} const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1));`;
      writeFileSync(module, `export const evaluator = { async evaluate() { ${takes} } };`);
      const work = { url: pathToFileURL(module).href, calls: [], context: {} };
      const limit = { time: new OwnTime(), timeoutMs: WAIT_MS };
      const nothing = () => Promise.reject(new Error('nothing was asked for'));
      const never = new AbortController().signal;
      const error = await answerOf('takes.mjs', work, nothing, limit, never).catch((thrown) => thrown);
      expect(error).to.include({ reason: 'SANDBOX_FAILED' });
      expect(error.message).to.match(/takes\.mjs: its process ended with SIGKILL, .*ENOMEM/);
    } finally {
      await eventually('it is empty', () => readFileSync(join(group, 'cgroup.procs'), 'utf8') === '');
      rmdirSync(group);
      rmSync(folder, { recursive: true });
    }
  });
}

if (bwrapIsThere && isHostRoot && memory !== undefined) {
  for (const backend of ['bubblewrap', 'process']) {
    describe(`a node without memory under sandboxes of ${backend}`, () => {
      let node: TestNode;
      let dataDir: string;
      before(async () => {
        dataDir = mkdtempSync(join(tmpdir(), 'polar-test-starved-'));
        const services = ['runtime-prewarm', 'harness-executor'] as const;
        node = await startNode(services, {}, { topology: { data_dir: dataDir } });
        const all = join(memory, instanceOf(join(dataDir, 'nodes/node-1')));
        const limit = join(all, memory === v2 ? 'memory.max' : 'memory.limit_in_bytes');
        writeFileSync(limit, String(NODE_MIB << 20));
      });
      after(async () => {
        await node?.[Symbol.asyncDispose]();
        rmSync(dataDir, { recursive: true });
      });

      const acquire = (spec: RuntimeInit = {}, ref = newRef()): Promise<string> =>
        node.acquire(ref, { backend, ...spec });
      const sh = async (runtimeId: string, script: string) => {
        const command = { runtimeId, argv: ['sh', '-c', script], timeoutMs: WAIT_MS };
        return (await execCollected(node.runtimes, command, AbortSignal.timeout(2 * WAIT_MS))).result;
      };

      it('gives no result of a command, and tells what it had; one at its own limit has its own', async () => {
        const id = await acquire();
        const { reason, message } = await sh(id, `${TAKE}; exit 0`).catch((error) => error);
        expect(reason, message).to.equal('SANDBOX_FAILED');
        expect(message).to.match(/ENOMEM.* had 1\d\d of its 4096 MiB/);
        expect(await sh(id, 'exit 3')).to.include({ exitCode: 3, outOfMemory: false });
        const small = await sh(await acquire({ memoryMb: NODE_MIB / 2 }), `exec ${TAKE}`);
        expect(small).to.include({ exitCode: 137, outOfMemory: true });
      });

      it('is no failure of a preparation', async () => {
        const prepare = [{ step: { case: 'exec' as const, value: { command: TAKE } } }];
        const { reason, message } = await acquire({ prepare }).catch((error) => error);
        expect(reason, message).to.equal('SANDBOX_FAILED');
      });

      it('is no end of a harness, whatever it makes of it', async () => {
        await using _ = await startStandInProxy({
          node: { ...node, proxySocket: proxySocketOf(dataDir, 'node-1') },
        });
        const ref = newRef();
        const harness = { name: 'shell', modelName: 'm', command: { command: `${TAKE}; exit 0` } };
        const run = {
          runtimeId: await acquire({}, ref),
          instruction: '',
          timeoutMs: BigInt(WAIT_MS),
          harness,
        };
        await node.work(ref, { case: 'run', value: create(RunWorkSchema, run) });
        const { kind } = await node.fact(ref);
        if (kind.case !== 'failed') throw new Error(`not failed: ${kind.case}`);
        expect(kind.value.failure).to.include({ reason: 'SANDBOX_FAILED' });
      });
    });
  }
}
