// What a sandbox costs that is prepared, and one that is a clone of a prepared layer.
import process from 'node:process';
import { distributionOf } from '../proxy/statistics.ts';
import { type BareNode, openBareNode, orderOf } from './bare-node.ts';
import { usedMs } from './meter.ts';

export interface CloneFigures {
  readonly cloneP50Ms: number;
  readonly cloneP99Ms: number;
  /** CPU of a sandbox, made and removed, in ms. */
  readonly preparedCpuMs: number;
  readonly clonedCpuMs: number;
}

/** About 0.3 s of CPU, and 200 files. */
const PREPARE = [
  'i=0; while [ $i -lt 200 ]; do echo "$i" > "file-$i"; i=$((i+1)); done',
  'python3 -c "sum(i * i for i in range(3_000_000))"',
].map((command) => ({ step: { case: 'exec' as const, value: { command } } }));
const SPEC = { backend: 'bubblewrap', prepare: PREPARE };
const PREPARED = 20;
const CLONED = 300;

export async function measureClones(engineUrl: string): Promise<CloneFigures> {
  await using node = await openBareNode({ engineUrl });
  const preparedCpuMs = await cpuEach(node, PREPARED, { ...SPEC, prepareEach: true });
  // The first makes the layer.
  await makeOne(node, SPEC);
  const times: number[] = [];
  const clonedCpuMs = await cpuEach(node, CLONED, SPEC, times);
  const { p50, p99 } = distributionOf(times);
  return { cloneP50Ms: p50, cloneP99Ms: p99, preparedCpuMs, clonedCpuMs };
}

async function cpuEach(
  node: BareNode,
  count: number,
  spec: Parameters<typeof orderOf>[0],
  times: number[] = [],
): Promise<number> {
  const before = usedMs([process.pid], node.folder);
  for (let i = 0; i < count; i++) times.push(await makeOne(node, spec));
  return (usedMs([process.pid], node.folder) - before) / count;
}

/** Milliseconds until it can be used. */
async function makeOne(node: BareNode, spec: Parameters<typeof orderOf>[0]): Promise<number> {
  const begun = performance.now();
  const { id } = await node.runtimes.acquire(orderOf(spec, 'one'), new AbortController().signal);
  const ms = performance.now() - begun;
  await node.runtimes.release(id);
  return ms;
}
