// A manager that has no file descriptor left, for a while: what it does then fails as the node's doing, and nothing of it stays.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { startNats, type TestNats } from '../support/nats.ts';
import {
  bwrapIsThere,
  eventually,
  managerIsReady,
  spawnManager,
  startNode,
  type TestNode,
} from '../support/runtime-prewarm.ts';

const ENOUGH = 1_024;
/** Descriptors that are left: none, for files alone, for some of the pipes of a command. */
const LEFT = [0, 1, 3, 5];

for (const backend of bwrapIsThere ? ['bubblewrap', 'process'] : ['process']) {
  describe(`runtime-prewarm without descriptors, with ${backend}`, () => {
    let nats: TestNats;
    let node: TestNode;
    let manager: ChildProcess;
    before(async () => {
      nats = await startNats();
      node = await startNode({ natsUrl: nats.url, start: false });
      manager = spawnManager(node);
      await managerIsReady(node);
    });
    after(async () => {
      const exited = once(manager, 'exit');
      if (manager.exitCode === null && manager.kill()) await exited;
      await node[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
    });

    const open = (): number[] => readdirSync(`/proc/${manager.pid}/fd`).map(Number);
    const setLimit = (count: number): void => {
      execFileSync('prlimit', ['--pid', String(manager.pid), `--nofile=${count}:`]);
    };
    /** All below the limit are open, but so many. */
    function leave(count: number): Disposable {
      const taken = new Set(open());
      let limit = 0;
      for (let free = 0; free < count || limit < 3; limit++) if (!taken.has(limit)) free++;
      setLimit(limit);
      return { [Symbol.dispose]: () => setLimit(ENOUGH) };
    }
    const boxes = (): string[] =>
      readdirSync(join(node.folder, 'data/nodes/node-1/boxes')).filter((name) => name.startsWith('rt-'));
    const come = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error) => error);

    it('fails what needs one, ends nothing else, and keeps none', async () => {
      const id = await node.acquire({ spec: { backend } });
      expect((await node.sh(id, 'true')).exitCode).to.equal(0);
      const before = open().length;
      for (const left of LEFT) {
        {
          using _ = leave(left);
          const run = await come(node.sh(id, 'true'));
          expect(run, `with ${left}`).to.include({ reason: 'SANDBOX_FAILED' });
          const made = await come(node.acquire({ spec: { backend } }));
          if (typeof made !== 'string') expect(made, `with ${left}`).to.include({ reason: 'SANDBOX_FAILED' });
          else await node.runtimes.releaseRuntime({ runtimeId: made });
        }
        expect((await node.sh(id, 'true')).exitCode).to.equal(0);
      }
      expect(manager.exitCode).to.equal(null);
      await eventually('it has as many as before', () => open().length <= before);
      await eventually('all others are gone', () => boxes().length === 1);
    });
  });
}
