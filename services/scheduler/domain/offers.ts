// Whether some node could run a task at all.
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { isExternal } from '../../common/specs/external.ts';
import { gpusOf, hasImageOf, type NodeState, offerFor, offers, offersBackend } from './nodes.ts';
import { needOf, partsOfNeed } from './task.ts';

/** A message names no more of them. */
const IMAGES_NAMED_MAX = 20;
const NODES_NAMED_MAX = 5;

/**
 * Throws BACKEND_NOT_OFFERED, IMAGE_NOT_FOUND or GPUS_NOT_OFFERED where no healthy node fits. While none is known, nothing is refused: a
 * node may still come.
 */
export function checkOffered(healthy: readonly NodeState[], spec: TaskSpec): void {
  if (healthy.length === 0 || isExternal(spec)) return;
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
  if (!healthy.some((node) => hasImageOf(node, need))) {
    const of = backend === '' ? '' : ` for runtime ${backend}`;
    const what = `no node has image ${image}${of}, and none may fetch it`;
    const there = healthy.filter((node) => offersBackend(node, need)).map((node) => imagesOf(node, need));
    throw new PolarError('IMAGE_NOT_FOUND', `${what}: ${someOf(there, NODES_NAMED_MAX, '; ')}`, {
      fields: [{ field: 'runtime.image', description: what }],
    });
  }
  if (!healthy.some((node) => offers(node, need))) throw tooManyGpus(healthy, need);
}

function tooManyGpus(healthy: readonly NodeState[], need: string): PolarError {
  const what = `no node that fits has ${partsOfNeed(need).gpus} GPUs`;
  const fitting = healthy.filter((node) => hasImageOf(node, need));
  const there = fitting.map((node) => `${node.id} has ${gpusOf(node, need)}`);
  return new PolarError('GPUS_NOT_OFFERED', `${what}: ${someOf(there, NODES_NAMED_MAX, '; ')}`, {
    fields: [{ field: 'runtime.gpus', description: what }],
  });
}

/** "node-1 has alpine, debian" */
function imagesOf(node: NodeState, need: string): string {
  const images = offerFor(node, need)?.images ?? [];
  return `${node.id} has ${someOf([...images].sort(), IMAGES_NAMED_MAX, ', ') || 'none'}`;
}

function someOf(all: readonly string[], max: number, between: string): string {
  const more = all.length > max ? `${between}and ${all.length - max} more` : '';
  return `${all.slice(0, max).join(between)}${more}`;
}

const union = (lists: readonly (readonly string[])[]): string => [...new Set(lists.flat())].sort().join(', ');
