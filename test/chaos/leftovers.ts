// What a cluster leaves: while it runs and has nothing to do, and when it has ended.
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { openBus } from '../../services/common/nats/bus.ts';
import { BUCKETS, STREAMS } from '../../services/common/nats/streams.ts';
import { usersOf } from '../support/cli.ts';
import type { Cluster, ClusterNode } from './cluster.ts';

/** Kind to what there is of it. */
export type Leftovers = Readonly<Record<string, readonly string[]>>;

/** All sessions have ended, all processes run. */
export async function ofIdle(cluster: Cluster): Promise<Leftovers> {
  const leases = await Promise.all(cluster.nodes.map(leasesOf));
  return {
    leases: leases.flat(),
    "sandboxes' folders": cluster.nodes.flatMap(boxesOf),
    "sandboxes' control groups": cluster.nodes.flatMap(({ instance }) =>
      globSync(`/sys/fs/cgroup/{,*/}${instance}/*/`),
    ),
    containers: await containersOf(cluster),
    "containers' shims": await shimsOf(cluster),
    ...(await inNats(cluster.nats.url)),
  };
}

/** All processes have been asked to end, and have. */
export async function ofStopped(cluster: Cluster): Promise<Leftovers> {
  const { folder, tmp, nodes } = cluster;
  const names = [folder, ...nodes.map(({ instance }) => instance)];
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return {
    containers: await containersOf(cluster),
    "containers' shims": await shimsOf(cluster),
    processes: names.flatMap(usersOf),
    mounts: mounts.filter((line) => names.some((name) => line.includes(name))),
    'control groups': nodes.flatMap(({ instance }) => globSync(`/sys/fs/cgroup/{,*/}${instance}`)),
    'temporary files': readdirSync(tmp),
    "sandboxes' folders": nodes.flatMap((node) =>
      [join(node.dataDir, 'boxes'), `/run/${node.instance}`].filter((path) => existsSync(path)),
    ),
  };
}

export const isNothing = (left: Leftovers): boolean => Object.values(left).every((some) => some.length === 0);

async function leasesOf({ id, runtimesUrl }: ClusterNode): Promise<string[]> {
  const { runtimes } = await createPlainClient(RuntimeService, runtimesUrl).listRuntimes({});
  const owned = runtimes.filter(({ owner }) => owner !== undefined && owner.sessionId !== '');
  return owned.map(({ runtimeId, owner }) => `${id} ${runtimeId} of ${owner?.sessionId}.${owner?.attempt}`);
}

async function containersOf({ engines, nodes }: Cluster): Promise<string[]> {
  const all = nodes.flatMap(({ instance }) => engines.map(({ engine }) => ({ engine, instance })));
  const left = all.map(({ engine, instance }) => engine.containers(`polar.instance=${instance}`));
  return (await Promise.all(left)).flat();
}

/** Of an engine that was killed: it may not know them, so that it lists no container. */
const shimsOf = async ({ engines }: Cluster): Promise<string[]> =>
  (await Promise.all(engines.map(({ engine }) => engine.shims()))).flat();

function boxesOf({ dataDir }: ClusterNode): string[] {
  return readdirSync(join(dataDir, 'boxes')).filter((name) => !name.startsWith('.'));
}

/** What is still to be done, what was given up, and credentials that still open something. */
async function inNats(url: string): Promise<Leftovers> {
  const bus = await openBus({ url, name: 'leftovers' });
  try {
    const waiting: string[] = [];
    for (const name of [STREAMS.work.name, STREAMS.facts.name]) {
      for await (const { name: consumer, num_pending, num_ack_pending } of bus.jsm.consumers.list(name)) {
        if (num_pending + num_ack_pending > 0) waiting.push(`${consumer}: ${num_pending + num_ack_pending}`);
      }
    }
    const dead = await bus.jsm.streams.info(STREAMS.dead.name, { subjects_filter: '>' });
    const capabilities: string[] = [];
    for await (const key of await (await bus.js.views.kv(BUCKETS.capabilities.name)).keys()) {
      capabilities.push(key);
    }
    return {
      'work and facts': waiting,
      'dead letters': Object.keys(dead.state.subjects ?? {}),
      capabilities,
    };
  } finally {
    await bus.close();
  }
}
