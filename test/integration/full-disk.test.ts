// The disk of a node is full, in the middle of what its sandboxes do: no task is to blame, and nothing is graded.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import { EvaluateWorkSchema, RunWorkSchema } from '../../gen/ts/polar/event/v1/work_pb.js';
import { execCollected } from '../../services/common/exec.ts';
import { proxySocketOf } from '../../services/common/proxy-socket.ts';
import { eventually } from '../support/eventually.ts';
import { newRef, type RuntimeInit, startNode, type TestNode } from '../support/node.ts';
import { bwrapIsThere, isHostRoot } from '../support/runtime-prewarm.ts';
import { startStandInProxy } from '../support/stand-in-proxy.ts';

const REPO = '/polar/session/repo';
const WAIT_MS = 20_000;
const exec = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });
const COMMIT = 'git -c user.name=x -c user.email=x@example.org commit -qm';
const PREPARE = [exec(`git init -q ${REPO} && cd ${REPO} && ${COMMIT} start --allow-empty`)];
/** Its file is removed from outside. */
const UNTIL_TOLD = 'touch /polar/session/wait; while test -e /polar/session/wait; do sleep 0.05; done';
const WRITE = 'head -c 600000 /dev/urandom > /polar/session/written';

if (bwrapIsThere && isHostRoot) {
  for (const backend of ['bubblewrap', 'process']) {
    describe(`a full disk under sandboxes of ${backend}`, () => {
      let node: TestNode;
      let dataDir: string;
      before(async () => {
        dataDir = mkdtempSync(join(tmpdir(), 'polar-test-full-'));
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=755', 'polar-test', dataDir]);
        const services = ['runtime-prewarm', 'harness-executor', 'evaluator'] as const;
        node = await startNode(services, {}, { topology: { data_dir: dataDir } });
      });
      after(async () => {
        await node?.[Symbol.asyncDispose]();
        execFileSync('umount', ['-l', dataDir]);
        rmSync(dataDir, { recursive: true });
      });

      const acquire = (ref = newRef(), spec: RuntimeInit = {}): Promise<string> =>
        node.acquire(ref, { backend, ...spec });
      const sh = async (runtimeId: string, script: string): Promise<number> => {
        const command = { runtimeId, argv: ['sh', '-c', script], timeoutMs: WAIT_MS };
        const { result } = await execCollected(node.runtimes, command, AbortSignal.timeout(2 * WAIT_MS));
        return result.exitCode;
      };
      /** All but a little. */
      function fill(): Disposable {
        const { bavail, bsize } = statfsSync(dataDir);
        const filler = join(dataDir, 'filler');
        writeFileSync(filler, Buffer.alloc(bavail * bsize - 256 * 1024));
        return { [Symbol.dispose]: () => rmSync(filler, { force: true }) };
      }
      /** What a command that waits looks at. */
      function waiting(): string[] {
        const boxes = join(dataDir, 'nodes/node-1/boxes');
        return readdirSync(boxes)
          .map((id) => join(boxes, id, 'root/polar/session/wait'))
          .filter(existsSync);
      }
      const waits = (): Promise<void> => eventually('a command waits', () => waiting().length > 0);
      function goOn(): void {
        for (const path of waiting()) rmSync(path);
      }
      const refused = (promise: Promise<unknown>) =>
        promise.then(
          (value) => ({ reason: `it was ${value}`, message: '' }),
          (error) => error,
        );

      it('leaves no result of a command', async () => {
        const id = await acquire();
        {
          using _ = fill();
          const { reason, message } = await refused(sh(id, `${WRITE}; exit 3`));
          expect(reason, message).to.equal('SANDBOX_FAILED');
          expect(message).to.contain('ENOSPC');
          expect((await refused(sh(id, 'true'))).reason).to.equal('SANDBOX_FAILED');
        }
        expect(await sh(id, `${WRITE} && exit 3`)).to.equal(3);
      });

      it('is no failure of a preparation', async () => {
        const made = acquire(newRef(), { prepare: [exec(`${UNTIL_TOLD}; ${WRITE}`)] });
        made.catch(() => {});
        await waits();
        using _ = fill();
        goOn();
        expect((await refused(made)).reason).to.equal('SANDBOX_FAILED');
      });

      it('is the doing of a command that has filled it', async () => {
        const id = await acquire();
        expect(await sh(id, 'cat /dev/zero > /polar/session/all; exit 5')).to.equal(5);
        expect(await sh(id, 'echo > /polar/session/more || exit 6')).to.equal(6);
        await node.runtimes.releaseRuntime({ runtimeId: id });
      });

      it('is no end of a harness, whatever it makes of it', async () => {
        await using _ = await startStandInProxy({
          node: { ...node, proxySocket: proxySocketOf(dataDir, 'node-1') },
        });
        for (const end of ['exit 1', 'exit 0']) {
          const ref = newRef();
          const harness = {
            name: 'shell',
            modelName: 'm',
            command: { command: `${UNTIL_TOLD}; ${WRITE}; ${end}` },
          };
          const run = { runtimeId: await acquire(ref), instruction: '', timeoutMs: BigInt(WAIT_MS), harness };
          await node.work(ref, { case: 'run', value: create(RunWorkSchema, run) });
          await waits();
          using _ = fill();
          goOn();
          const { kind } = await node.fact(ref);
          if (kind.case !== 'failed') throw new Error(`not failed: ${kind.case}`);
          expect(kind.value.failure, end).to.include({ reason: 'SANDBOX_FAILED', infrastructure: true });
        }
      });

      it('is no grade: the work is graded when there is room', async () => {
        const ref = newRef();
        const runtime = { backend, prepare: PREPARE };
        const runtimeId = await acquire(ref, runtime);
        expect(await sh(runtimeId, `cd ${REPO} && echo 1 > work`)).to.equal(0);
        const value = create(EvaluateWorkSchema, {
          ...{ runtimeId, runtime, outcome: Outcome.COMPLETED, timeoutMs: 60_000n },
          evaluator: {
            strategy: 'test_on_output',
            config: {
              repo_dir: REPO,
              test_command: `${UNTIL_TOLD}; ${WRITE} && echo "PASSED work" || echo "FAILED work"`,
              expected_output_json: { work: 'PASSED' },
            },
          },
        });
        await node.work(ref, { case: 'evaluate', value });
        const isOver = (): boolean => node.facts.some((fact) => fact.ref?.sessionId === ref.sessionId);
        await waits();
        {
          using _ = fill();
          goOn();
          const isToCome = (): boolean => node.log('evaluator').includes('work failed, will retry');
          await eventually('it is to be tried again', () => isToCome() || isOver());
        }
        await eventually('it is tested again', () => waiting().length > 0 || isOver());
        goOn();
        const { kind } = await node.fact(ref);
        if (kind.case !== 'evaluated') throw new Error(`not evaluated: ${kind.case}`);
        expect(kind.value.reward, JSON.stringify(kind.value.evaluation)).to.equal(1);
        expect(node.log('evaluator')).to.contain('SANDBOX_FAILED');
      });
    });
  }
}
