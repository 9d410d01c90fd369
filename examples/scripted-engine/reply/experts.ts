// Routed experts as a mixture-of-experts model would have them: an id's row depends on the ids up to it and on nothing else,
// so that it is the same in whichever call the id is read.
import { mix } from './logprobs.ts';

/** Of the model that is played. */
export interface ExpertModel {
  /** 0: it is no mixture of experts. */
  readonly layers: number;
  readonly topK: number;
  readonly experts: number;
}

export const NO_EXPERTS: ExpertModel = { layers: 0, topK: 0, experts: 0 };

/** int32[n, layers, top_k] of all ids from `from` on but the last one, in base64. */
export function routedExperts(ids: readonly number[], from: number, model: ExpertModel): string {
  const { layers, topK, experts } = model;
  const rows = new Int32Array(Math.max(0, ids.length - 1 - from) * layers * topK);
  let at = 0;
  let hash = 0;
  for (const [place, id] of ids.slice(0, -1).entries()) {
    hash = mix(hash, id);
    if (place < from) continue;
    for (let layer = 0; layer < layers; layer++) {
      const first = mix(hash, layer);
      for (let k = 0; k < topK; k++) rows[at++] = (first + k) % experts;
    }
  }
  return Buffer.from(rows.buffer).toString('base64');
}
