// Whether some node could run a task at all.
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { type NodeState, offers, offersBackend } from './nodes.ts';
import { needOf, partsOfNeed } from './task.ts';

/**
 * Throws BACKEND_NOT_OFFERED or IMAGE_NOT_FOUND where no healthy node fits. While none is known, nothing is refused: a
 * node may still come.
 */
export function checkOffered(healthy: readonly NodeState[], spec: TaskSpec): void {
  if (healthy.length === 0) return;
  const need = needOf(spec);
  const { backend, image } = partsOfNeed(need);
  if (!healthy.some((node) => offersBackend(node, need))) {
    const what =
      backend === ''
        ? 'no node has a default runtime: set runtime.backend'
        : `no node offers runtime ${backend}`;
    const there = union(healthy.map(({ heartbeat }) => heartbeat?.backends ?? []));
    throw new PolarError('BACKEND_NOT_OFFERED', `${what}; the nodes offer ${there || 'none'}`, {
      fields: [{ field: 'runtime.backend', description: what }],
    });
  }
  if (!healthy.some((node) => offers(node, need))) {
    const what = `no node that offers the runtime has image ${image}`;
    const there = union(healthy.map(({ heartbeat }) => heartbeat?.images ?? []));
    throw new PolarError('IMAGE_NOT_FOUND', `${what}; the nodes have ${there || 'none'}`, {
      fields: [{ field: 'runtime.image', description: what }],
    });
  }
}

const union = (lists: readonly (readonly string[])[]): string => [...new Set(lists.flat())].sort().join(', ');
