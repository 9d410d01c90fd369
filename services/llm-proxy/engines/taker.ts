// Who takes what an engine sends, as it comes: called from within the read, so that a chunk costs no promise.
import type { JsonObject } from '../domain/json.ts';
import { chunksOf } from '../domain/made-stream.ts';

export interface Taker<T> {
  /** What it throws ends the answer. */
  take(one: T): void;
  /** All that came at once is taken; what comes next waits for the promise. */
  flush(): Promise<void> | undefined;
}

/** Give a whole reply as the chunks of a stream. */
export async function madeStream(reply: JsonObject, to: Taker<JsonObject>): Promise<void> {
  for (const chunk of chunksOf(reply)) to.take(chunk);
  await to.flush();
}
