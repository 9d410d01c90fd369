// Sessions with three instant model calls, many submitted at once: how many a second, and what the mesh costs beside the floor.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../../services/common/client.ts';
import { type Mesh, type MeshOptions, startMesh } from '../../support/mesh.ts';
import { curlTask } from '../../support/tasks.ts';
import { cpuMsOf, residentMiBOf } from '../proxy/processes.ts';
import { say } from '../scheduler/machine.ts';
import type { Throughput } from './floor.ts';

export interface MeshThroughput extends Throughput {
  readonly sessions: number;
  /** Own CPU of each process a session, in ms. */
  readonly ownCpuMs: ReadonlyMap<string, number>;
  readonly residentMiB: ReadonlyMap<string, number>;
}

const SLOTS = 8;
const WAIT_MS = 30_000;
/** Until all have ended, and for each one more: of docker a machine ends five a second. */
const END_MS = 120_000;
const END_EACH_MS = 300;
/** So that code is compiled and connections are open. */
const WARM_UP = 16;

export interface ThroughputOptions {
  readonly runtime: { readonly backend: string; readonly image?: string };
  readonly sizes: readonly number[];
  readonly node?: MeshOptions['node'];
  readonly nodeFlags?: readonly string[];
  /** CPU that these processes and the sandboxes of a node have used so far. */
  readonly cpuMs: (pids: readonly number[], nodeFolder: string) => number;
}

/** One mesh, the sizes one after the other; the first figures are those at rest. */
export async function measureMesh({
  runtime,
  sizes,
  node = {},
  nodeFlags = [],
  cpuMs,
}: ThroughputOptions): Promise<MeshThroughput[]> {
  await using mesh = await startMesh({
    ...{ runSlots: SLOTS, prepareSlots: SLOTS, evaluateSlots: SLOTS, node, nodeFlags },
  });
  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  await runAll(rollout, 'warm-up', WARM_UP, runtime);
  const figures: MeshThroughput[] = [];
  for (const sessions of sizes) {
    figures.push(await measured(mesh, rollout, sessions, { runtime, cpuMs }));
    say(`${sessions} at once: ${figures.at(-1)?.perSecond.toFixed(1)} sessions/s`);
  }
  return figures;
}

async function measured(
  mesh: Mesh,
  rollout: Client<typeof RolloutService>,
  sessions: number,
  { runtime, cpuMs }: Pick<ThroughputOptions, 'runtime' | 'cpuMs'>,
): Promise<MeshThroughput> {
  const pids = processesOf(mesh);
  const spentMs = (): number => cpuMs([...pids.values()], mesh.nodeFolder);
  const cpuBefore = new Map([...pids].map(([name, pid]) => [name, cpuMsOf(pid)]));
  const [busyBefore, begun] = [spentMs(), performance.now()];
  await runAll(rollout, `at-once-${sessions}`, sessions, runtime);
  const seconds = (performance.now() - begun) / 1000;
  return {
    sessions,
    perSecond: sessions / seconds,
    cpuMs: (spentMs() - busyBefore) / sessions,
    ownCpuMs: new Map(
      [...pids].map(([name, pid]) => [name, (cpuMsOf(pid) - (cpuBefore.get(name) ?? 0)) / sessions]),
    ),
    residentMiB: new Map([...pids].map(([name, pid]) => [name, residentMiBOf(pid)])),
  };
}

/** Everything of the mesh; the engine is none of it. */
const processesOf = ({ pids, nats }: Mesh): Map<string, number> =>
  new Map([...[...pids].filter(([name]) => name !== 'engine'), ['nats-server', nats.pid]]);

/** Submit at once, and wait for the end; all must be usable. */
async function runAll(
  rollout: Client<typeof RolloutService>,
  taskId: string,
  sessions: number,
  runtime: ThroughputOptions['runtime'],
): Promise<void> {
  await rollout.submitTask({ spec: curlTask(taskId, sessions, 3, { runtime }) });
  const endMs = END_MS + sessions * END_EACH_MS;
  const until = performance.now() + endMs;
  while (performance.now() < until) {
    // A long poll: asking again and again would be work of the scheduler that is no session's.
    const { task } = await rollout.getTask({ taskId, wait: durationFromMs(WAIT_MS), summary: true });
    if ((task?.sessionsByState['ended'] ?? 0) < sessions) continue;
    const failed = sessions - (task?.sessionsByOutcome['completed'] ?? 0);
    if (failed > 0) throw new Error(`${failed} of ${taskId} failed: ${await oneFailure(rollout, taskId)}`);
    return;
  }
  throw new Error(`${taskId} has not ended within ${endMs} ms`);
}

async function oneFailure(rollout: Client<typeof RolloutService>, taskId: string): Promise<string> {
  const { sessions } = await rollout.listSessions({ taskId });
  return sessions.find(({ failure }) => failure !== undefined)?.failure?.message ?? 'no failure is known';
}
