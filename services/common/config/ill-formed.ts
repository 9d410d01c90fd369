// Texts that no message can carry: an escape such as "\ud800" writes half of a surrogate pair.
import type { FieldPlace } from './inexact.ts';

/** Each with its place below `path`. */
export function* illFormedTexts(value: unknown, path: readonly PropertyKey[] = []): Generator<FieldPlace> {
  if (typeof value === 'string' && !value.isWellFormed()) {
    yield { path, description: 'must be text: half a surrogate pair is none' };
  }
  if (typeof value !== 'object' || value === null) return;
  const entries = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [key, one] of entries) {
    const within = [...path, typeof key === 'string' ? key.toWellFormed() : key];
    yield* illFormedTexts(key, within);
    yield* illFormedTexts(one, within);
  }
}
