// The same text in other tokens than encoding it gives.
import type { Tokenizer } from './tokenizer.ts';

/** One token in so many is split. */
const SPLIT_EVERY = 8;

/** Some tokens as the two that they were merged from. */
export function otherwiseSplit(tokenizer: Tokenizer, ids: readonly number[]): number[] {
  let due = 0;
  return ids.flatMap((id, i) => {
    const parts = i >= due ? tokenizer.partsOf(id) : undefined;
    if (parts !== undefined) due = i + SPLIT_EVERY;
    return parts ?? [id];
  });
}
