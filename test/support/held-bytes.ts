// What a test's own process holds, garbage apart: resident memory and an uncollected heap tell the hour as well.
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
/** Buffers go one collection after the objects that hold them. */
const COLLECTIONS = 3;

/** Bytes of the heap and of buffers beside it, after a collection. */
export function heldBytes(): number {
  for (let i = 0; i < COLLECTIONS; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
