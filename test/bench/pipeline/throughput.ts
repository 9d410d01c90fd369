// Sessions with three instant model calls, many submitted at once: how many a second, and what the mesh takes for each.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Client } from '@connectrpc/connect';
import { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { createServiceClient } from '../../../services/common/client.ts';
import { type Mesh, type MeshOptions, startMesh } from '../../support/mesh.ts';
import { curlTask } from '../../support/tasks.ts';
import { cpuMsOf, ownMiBOf } from '../proxy/processes.ts';
import type { Throughput } from './floor.ts';
import { eachMs, type Meter } from './meter.ts';

export interface MeshThroughput extends Throughput {
  readonly sessions: number;
  /** Own CPU of each process a session, in ms. */
  readonly ownCpuMs: ReadonlyMap<string, number>;
  /** Of its own, resident. */
  readonly residentMiB: ReadonlyMap<string, number>;
}

export interface MeasuredMesh extends AsyncDisposable {
  readonly mesh: Mesh;
  /** Sessions that have ended so far. */
  readonly ended: number;
  /** So many submitted as one task, until all have ended. */
  measure(sessions: number): Promise<MeshThroughput>;
}

const SLOTS = 8;
const WAIT_MS = 30_000;
/** Until all have ended, and for each one more: of docker a machine ends five a second. */
const END_MS = 120_000;
const END_EACH_MS = 300;

export interface ThroughputOptions
  extends Pick<MeshOptions, 'node' | 'nodeFlags' | 'engineUrl' | 'natsConfig'> {
  readonly runtime: { readonly backend: string; readonly image?: string };
  readonly meter: Meter;
}

export async function openMesh({ runtime, meter, ...options }: ThroughputOptions): Promise<MeasuredMesh> {
  const mesh = await startMesh({
    ...{ runSlots: SLOTS, prepareSlots: SLOTS, evaluateSlots: SLOTS, ...options },
  });
  const rollout = createServiceClient(RolloutService, mesh.schedulerUrl);
  let [tasks, ended] = [0, 0];
  return {
    mesh,
    get ended() {
      return ended;
    },
    async measure(sessions) {
      const figures = await measured(mesh, sessions, meter, () =>
        runAll(rollout, `at-once-${++tasks}`, sessions, runtime),
      );
      ended += sessions;
      return figures;
    },
    [Symbol.asyncDispose]: () => mesh[Symbol.asyncDispose](),
  };
}

async function measured(
  mesh: Mesh,
  sessions: number,
  meter: Meter,
  use: () => Promise<void>,
): Promise<MeshThroughput> {
  const pids = processesOf(mesh);
  const look = () => ({
    all: meter([...pids.values()], mesh.nodeFolder),
    each: new Map([...pids].map(([name, pid]) => [name, cpuMsOf(pid)])),
  });
  const [before, begun] = [look(), performance.now()];
  await use();
  const seconds = (performance.now() - begun) / 1000;
  const after = look();
  return {
    sessions,
    perSecond: sessions / seconds,
    cpu: eachMs(before.all, after.all, sessions),
    ownCpuMs: new Map(
      [...after.each].map(([name, ms]) => [name, (ms - (before.each.get(name) ?? 0)) / sessions]),
    ),
    residentMiB: new Map([...pids].map(([name, pid]) => [name, ownMiBOf(pid)])),
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
