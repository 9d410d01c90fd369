// Nodes that run nothing: how long from a fact that they send to the work that follows from it, while many sessions wait.
import { sleep } from '../../../services/common/clock.ts';
import { type FakeNode, startFakeNode } from '../../support/fake-node.ts';
import { type RolloutClient, taskSpec, until } from '../../support/scheduler.ts';

const NODES = 8;
const SLOTS = 8;
/** Of a run on average; each takes from half of it to half more, as runs do not end all at once. */
const RUN_MS = 1_000;
const GROUP = 8;
/** Work that comes later than this has waited for a slot, not for the scheduler. */
const WARM_MS = 3_000;

export interface Latencies {
  /** Milliseconds from a fact to its work, at the node. */
  readonly samples: number[];
  readonly perSecond: number;
}

export async function latencies(natsUrl: string, client: RolloutClient, ms: number): Promise<Latencies> {
  const told = new Map<string, number>();
  const samples: number[] = [];
  const nodes: FakeNode[] = [];
  const begunMs = performance.now();
  let ended = 0;
  for (let i = 0; i < NODES; i++) nodes.push(await startFakeNode(natsUrl, options(i)));
  for (const node of nodes) {
    const { run, evaluate } = node.on;
    node.on.run = async (work) => {
      await sleep(RUN_MS * (0.5 + Math.random()));
      told.set(work.ref?.sessionId ?? '', performance.now());
      return await run(work);
    };
    node.on.evaluate = (work) => {
      const sentMs = told.get(work.ref?.sessionId ?? '');
      told.delete(work.ref?.sessionId ?? '');
      if (sentMs !== undefined && sentMs - begunMs > WARM_MS) samples.push(performance.now() - sentMs);
      ended++;
      return evaluate(work);
    };
  }
  const seconds = ms / 1000;
  const tasks = Math.ceil((NODES * SLOTS * seconds) / (RUN_MS / 1000) / GROUP);
  for (let i = 0; i < tasks; i++)
    await client.submitTask({ spec: taskSpec(`run-${i}`, { numSamples: GROUP }) });
  await until('all have ended', () => ended === tasks * GROUP, 10 * ms);
  const perSecond = ended / ((performance.now() - begunMs) / 1000);
  for (const node of nodes) await node[Symbol.asyncDispose]();
  await until('all nodes are lost', async () =>
    (await client.listNodes({})).nodes.every(({ healthy }) => !healthy),
  );
  return { samples, perSecond };
}

const options = (i: number) => ({
  id: `bench-${i}`,
  prepareSlots: SLOTS,
  runSlots: SLOTS,
  readySlots: SLOTS,
  evaluateSlots: SLOTS * 2,
  heartbeatMs: 1_000,
});
