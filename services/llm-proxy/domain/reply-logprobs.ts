// The logprobs of a whole reply: their numbers are known (parse-reply.ts), and the entries are kept only for who is going
// to look at them, and parsed when he does: kept for all, they are most of what a small collection of garbage has to move.
import { parseLenient } from '../../common/lenient-json.ts';
import type { JsonObject, JsonValue } from './json.ts';

/** What is known of entries that nobody has looked at, on the `logprobs` of their choice. */
const UNREAD = Symbol('unread');

interface Unread {
  readonly logprobs: Float32Array;
  /** The entries' bytes, a character for each; unset: they are gone. */
  readonly text?: string;
}

const unreadOf = (logprobs: object): Unread | undefined => (logprobs as { [UNREAD]?: Unread })[UNREAD];

/** The logprobs of a choice's `logprobs`, where its entries were not parsed. */
export const unreadLogprobs = (logprobs: object): Float32Array | undefined => unreadOf(logprobs)?.logprobs;

/** A choice's `logprobs` of which only the numbers are left. */
export const numbersOnly = (logprobs: Float32Array, others: JsonObject): JsonObject =>
  Object.assign({ [UNREAD]: { logprobs } satisfies Unread }, others);

/** A choice's `logprobs`: the entries are there when they are asked for. `text`: their bytes, a character for each. */
export function entriesUnread(numbers: Float32Array, text: string, others: JsonObject): JsonObject {
  const value: Unread = { logprobs: numbers, text };
  const logprobs = Object.defineProperty({}, 'content', WHEN_ASKED);
  Object.defineProperty(logprobs, UNREAD, { value });
  return Object.assign(logprobs, others);
}

const SHOWN = { enumerable: true, configurable: true };

/** The same for all of them, as V8 makes a hidden class for each one that is not. */
const WHEN_ASKED = {
  ...SHOWN,
  get(this: object): JsonValue {
    const text = unreadOf(this)?.text ?? '';
    const value = parseLenient(Buffer.from(text, 'latin1').toString('utf8')) ?? null;
    Object.defineProperty(this, 'content', { ...SHOWN, value, writable: true });
    return value;
  },
  set(this: object, value: unknown): void {
    Object.defineProperty(this, 'content', { ...SHOWN, value, writable: true });
  },
};
