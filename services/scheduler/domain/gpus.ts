// Whether GPUs are free on a node. Which session has which of them is the node's matter; here they are counted, by what nodes tell
// and by what sessions stand there.
import { gpusOf, type NodeState, offerFor } from './nodes.ts';
import { partsOfNeed } from './task.ts';

/** Sandboxes that hold none before their run may be prepared ahead for so many times the GPUs of a node. */
const AHEAD = 1;

/** For the next step of a session with that need: the preparation of its sandbox, or its run in one that is ready. */
export function hasFreeGpus(node: NodeState, need: string, step: 'prepare' | 'run'): boolean {
  const wanted = partsOfNeed(need).gpus;
  const all = gpusOf(node, need);
  if (wanted === 0 || all === Number.POSITIVE_INFINITY) return true;
  const isEarly = offerFor(node, need)?.gpusFromCreation === true;
  // It has them.
  if (isEarly && step === 'run') return true;
  const { held, ahead } = gpuUse(node);
  if (isEarly || step === 'run') return held + wanted <= all;
  return held + ahead + wanted <= (1 + AHEAD) * all;
}

/** `ahead`: of sandboxes that get them with their run. */
function gpuUse(node: NodeState): { held: number; ahead: number } {
  let [held, ahead] = [0, 0];
  for (const [id, need] of node.gpuNeeds) {
    const { gpus } = partsOfNeed(need);
    const isWaiting = node.preparing.has(id) || node.ready.has(id);
    if (isWaiting && offerFor(node, need)?.gpusFromCreation !== true) ahead += gpus;
    else held += gpus;
  }
  return { held, ahead };
}

/** "2 of 4 GPUs of node-1 are free" */
export function freeGpusText(node: NodeState, need: string): string {
  const all = gpusOf(node, need);
  return `${Math.max(0, all - gpuUse(node).held)} of ${all} GPUs of node ${node.id} are free`;
}
