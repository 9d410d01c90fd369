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

/** The head of a .npy file ends at a multiple of it. */
const NPY_ALIGN = 64;

/** int32[n, layers, top_k] of all ids from `from` on but the last one, in base64. */
export const routedExperts = (ids: readonly number[], from: number, model: ExpertModel): string =>
  Buffer.from(expertRows(ids, from, model).buffer).toString('base64');

/** The same as vLLM tells them: a .npy file of the fewest bytes that the experts need, in base64. */
export function npyExperts(ids: readonly number[], from: number, model: ExpertModel): string {
  const { layers, topK, experts } = model;
  const told = expertRows(ids, from, model);
  const values = experts <= 256 ? Uint8Array.from(told) : Uint16Array.from(told);
  const descr = experts <= 256 ? '|u1' : '<u2';
  const shape = `(${told.length / (layers * topK)}, ${layers}, ${topK})`;
  const head = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  const padded = `${head.padEnd(NPY_ALIGN * Math.ceil((head.length + 11) / NPY_ALIGN) - 11)}\n`;
  const magic = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, padded.length & 0xff, padded.length >> 8]);
  return Buffer.concat([magic, Buffer.from(padded), new Uint8Array(values.buffer)]).toString('base64');
}

function expertRows(ids: readonly number[], from: number, model: ExpertModel): Int32Array {
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
  return rows;
}
