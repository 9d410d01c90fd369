// The six services as processes: where each starts and where it says that it is ready.
import { join } from 'node:path';
import { publicUrl, schemeOf } from '../../services/common/config/public-url.ts';
import type { Topology } from '../../services/common/config/topology.ts';
import { programOf } from '../../tools/built.mjs';

export const ROOT = join(import.meta.dirname, '..', '..');

export const SERVICES = [
  'scheduler',
  'reconstructor',
  'runtime-prewarm',
  'harness-executor',
  'llm-proxy',
  'evaluator',
] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Services that a node has; the others are there once. */
export const NODE_SERVICES: readonly ServiceName[] = [
  'runtime-prewarm',
  'harness-executor',
  'llm-proxy',
  'evaluator',
];

/**
 * A mesh is many processes on one machine: their heaps are kept small, and are collected before they are 1.6 times what
 * lives in them, where V8 would wait for four times as much. A young generation so small is collected by the thread that
 * uses it, as waking others costs more than they spare. The llm-proxy's young objects are those of all calls in flight
 * and need room; they, too, are collected by the thread that uses them, and the rest of its garbage collection gets one
 * thread, as four take the core from the calls.
 */
export const nodeFlagsOf = (name: ServiceName): readonly string[] =>
  FLAGS_OF[name] ?? ['--no-parallel-scavenge', '--max-semi-space-size=2', '--heap-growing-percent=60'];

const FLAGS_OF: Partial<Record<ServiceName, readonly string[]>> = {
  'llm-proxy': [
    '--v8-pool-size=1',
    '--no-parallel-scavenge',
    '--min-semi-space-size=32',
    '--max-semi-space-size=32',
    '--heap-growing-percent=60',
  ],
  // Bytes of trajectories on their way count as old; only a heap that may begin large does not look at them all the time.
  // Groups on their way live for a while: in a small young space each would be moved twice.
  reconstructor: ['--no-parallel-scavenge', '--max-semi-space-size=8', '--initial-old-space-size=128'],
};

export const mainOf = (name: ServiceName): string => programOf(join(ROOT, 'services', name, 'main.ts'));

/** host:port where a service listens, as seen from this machine. */
export function addressOf(topology: Topology, name: ServiceName, nodeId?: string): string {
  const node = topology.gateway.nodes.find((one) => one.id === nodeId) ?? topology.gateway.nodes[0];
  const local = (host: string, port: number): string => publicUrl({ host, port }, schemeOf(topology));
  switch (name) {
    case 'scheduler':
      return local(topology.rollout.host, topology.rollout.port);
    case 'reconstructor':
      return local(topology.reconstructor.host, topology.reconstructor.port);
    case 'llm-proxy':
      return local(node?.host ?? '', node?.port ?? 0);
    case 'runtime-prewarm':
      return local('127.0.0.1', node?.runtime_prewarm_port ?? 0);
    case 'harness-executor':
      return local('127.0.0.1', node?.harness_executor_port ?? 0);
    case 'evaluator':
      return local('127.0.0.1', node?.evaluator_port ?? 0);
  }
}
