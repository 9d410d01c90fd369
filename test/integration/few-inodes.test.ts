// A node's disk on which few files, or none, can be made any more: no task is to blame, nothing of what failed stays.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { execCollected } from '../../services/common/exec.ts';
import { newRef, type RuntimeInit, startNode, type TestNode } from '../support/node.ts';
import { bwrapIsThere, isHostRoot } from '../support/runtime-prewarm.ts';

const WAIT_MS = 20_000;
const INODES = 3_000;
/** A process's sandbox takes a dozen, one of bubblewrap three dozen. */
const LEFT = [0, 3, 8, 40, 60, 100];
const ROUNDS = 12;

if (bwrapIsThere && isHostRoot) {
  for (const backend of ['bubblewrap', 'process']) {
    describe(`few inodes under sandboxes of ${backend}`, () => {
      let node: TestNode;
      let dataDir: string;
      before(async () => {
        dataDir = mkdtempSync(join(tmpdir(), 'polar-test-inodes-'));
        const size = `size=24m,nr_inodes=${INODES},mode=755`;
        execFileSync('mount', ['-t', 'tmpfs', '-o', size, 'polar-test', dataDir]);
        node = await startNode(
          ['runtime-prewarm'],
          { layers_free_mb: 0 },
          { topology: { data_dir: dataDir } },
        );
      });
      after(async () => {
        await node?.[Symbol.asyncDispose]();
        execFileSync('umount', ['-l', dataDir]);
        rmSync(dataDir, { recursive: true });
      });

      const boxes = (): string => join(dataDir, 'nodes/node-1/boxes');
      const free = (): number => statfsSync(dataDir).ffree;
      const acquire = (spec: RuntimeInit = {}): Promise<string> =>
        node.acquire(newRef(), { backend, ...spec });
      const release = (runtimeId: string) => node.runtimes.releaseRuntime({ runtimeId });
      const sh = async (runtimeId: string, script: string): Promise<number> => {
        const command = { runtimeId, argv: ['sh', '-c', script], timeoutMs: WAIT_MS };
        const { result } = await execCollected(node.runtimes, command, AbortSignal.timeout(2 * WAIT_MS));
        return result.exitCode;
      };
      /** All inodes but so many. */
      function fill(left: number): Disposable {
        const folder = join(dataDir, 'filler');
        mkdirSync(folder);
        for (let i = 0; free() > left; i++) writeFileSync(join(folder, `${i}`), '');
        return { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
      }

      it('leave nothing of what they do not suffice for, and the node works again', async () => {
        await release(await acquire());
        for (const left of LEFT) {
          using _ = fill(left);
          for (let round = 0; round < ROUNDS; round++) {
            const made = await acquire().catch((error) => error);
            if (typeof made === 'string') await release(made);
            else expect(made.reason, made.message).to.equal('SANDBOX_FAILED');
          }
        }
        expect(readdirSync(boxes())).to.deep.equal(['.fifos']);
        // Made ahead of their use, and no more than that.
        expect(readdirSync(join(boxes(), '.fifos')).length).to.be.lessThan(100);
        await release(await acquire());
      });

      it('are the doing of a command that has taken them', async () => {
        const id = await acquire();
        const script = `i=0; while echo > /polar/session/file-$i; do i=$((i + 1)); done 2> /dev/null; exit 5`;
        expect(await sh(id, script)).to.equal(5);
        await release(id);
      });

      if (backend === 'bubblewrap') {
        it('are not taken by layers that nobody uses any more', async () => {
          for (let i = 0; i < 16; i++) {
            const command = `cd /polar/session && mkdir made && cd made && seq -f ${i}-%g 200 | xargs touch`;
            await release(await acquire({ prepare: [{ step: { case: 'exec', value: { command } } }] }));
          }
          expect(readdirSync(join(boxes(), '../layers'))).to.have.length.within(2, 13);
        });

        it('or no bytes are no fault of a task that caps what it writes', async () => {
          const filler = join(dataDir, 'filler');
          for (const leftBytes of [0, 200_000]) {
            const { bavail, bsize } = statfsSync(dataDir);
            writeFileSync(filler, Buffer.alloc(bavail * bsize - leftBytes));
            const { reason, message } = await acquire({ storageMb: 32 }).catch((error) => error);
            expect(reason, message).to.equal('SANDBOX_FAILED');
            expect(message).to.contain('ENOSPC');
            rmSync(filler);
          }
          using _ = fill(0);
          const { reason, message } = await acquire({ storageMb: 32 }).catch((error) => error);
          expect(reason, message).to.equal('SANDBOX_FAILED');
          expect(message).to.contain('ENOSPC');
        });
      }
    });
  }
}
