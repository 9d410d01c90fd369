// The floor of throughput: the command of the sessions in the same sandbox, started by a bare loop, straight at the engine.
import { Limit } from '../../../services/runtime-prewarm/host/limit.ts';
import { type BareNode, orderOf } from './bare-node.ts';

export interface Throughput {
  readonly perSecond: number;
  /** CPU of sandboxes and of what manages them a session, in ms; the engine is not among it. */
  readonly cpuMs: number;
}

export interface FloorOptions {
  readonly sessions: number;
  readonly atOnce: number;
  /** CPU used so far. */
  readonly cpuMs: () => number;
}

const SESSION_MS = 60_000;

export async function measureFloor(
  node: BareNode,
  runtime: { readonly backend: string; readonly image?: string },
  command: string,
  { sessions, atOnce, cpuMs }: FloorOptions,
): Promise<Throughput> {
  let next = 0;
  const loop = async (): Promise<void> => {
    for (let i = next++; i < sessions; i = next++) await one(node, runtime, command, `floor-${i}`);
  };
  const [cpuBefore, begun] = [cpuMs(), performance.now()];
  await Promise.all(Array.from({ length: atOnce }, loop));
  const seconds = (performance.now() - begun) / 1000;
  return { perSecond: sessions / seconds, cpuMs: (cpuMs() - cpuBefore) / sessions };
}

async function one(node: BareNode, runtime: object, command: string, name: string): Promise<void> {
  const { signal } = new AbortController();
  const sandbox = await node.runtimes.acquire(orderOf(runtime, name), signal);
  const env = { OPENAI_BASE_URL: `${sandbox.proxyUrl}/v1`, OPENAI_API_KEY: 'none' };
  const { exitCode } = await sandbox.exec(
    {
      ...{ argv: ['sh', '-c', command], cwd: sandbox.plan.workdir, env, stdin: new Uint8Array() },
      ...{ mounts: [], proxyAs: name, limit: new Limit(SESSION_MS) },
    },
    () => {},
    signal,
  );
  await node.runtimes.release(sandbox.id);
  if (exitCode !== 0) throw new Error(`${name} ended with exit code ${exitCode}`);
}
