// Whole replies of engines are logprobs for the most part: an object for each token, of which one number is wanted. The
// numbers are read from the text; the entries are kept only for who is going to look at them, and parsed when he does:
// kept for all, they are most of what a small collection of garbage has to move.

import { parseLenient } from '../../common/lenient-json.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import { logprobOf } from './logprob.ts';

/** In front of the entries. No string can hold it: it would have to escape the quotes. */
const OPENING = '"logprobs":{"content":[';

interface Entries {
  /** The brackets of the array. */
  readonly open: number;
  readonly close: number;
  readonly logprobs: readonly number[];
}

/** What is known of entries that nobody has looked at, on the `logprobs` of their choice. */
const UNREAD = Symbol('unread');

interface Unread {
  readonly logprobs: readonly number[];
  /** The entries' bytes, a character for each; unset: they are gone. */
  readonly text?: string;
}

const unreadOf = (logprobs: object): Unread | undefined => (logprobs as { [UNREAD]?: Unread })[UNREAD];

/** The logprobs of a choice's `logprobs`, where its entries were not parsed. */
export const unreadLogprobs = (logprobs: object): readonly number[] | undefined =>
  unreadOf(logprobs)?.logprobs;

/**
 * The reply; undefined: it is no JSON. Nothing of the bytes is kept. With `keep` the entries of its logprobs are there to be
 * looked at; without, only their numbers.
 */
export function parseReply(bytes: Buffer, keep: boolean): JsonValue | undefined {
  // A character for each byte.
  const text = bytes.includes(OPENING) ? bytes.toString('latin1') : '';
  const all = entriesIn(text);
  const value = all && parseLenient(withoutEntries(bytes, all));
  const kept = keep ? bytes : undefined;
  if (all !== undefined && isObject(value) && restored(value, all, kept)) return value;
  return parseLenient(bytes.toString('utf8'));
}

/** Of all choices in their order; undefined: one of them is not what it seems. */
function entriesIn(text: string): Entries[] | undefined {
  const all: Entries[] = [];
  for (let at = text.indexOf(OPENING); at >= 0; at = text.indexOf(OPENING, all.at(-1)?.close)) {
    const entries = entriesFrom(text, at + OPENING.length - 1);
    if (entries === undefined) return undefined;
    all.push(entries);
  }
  return all;
}

/** The entries of a choice are one number instead, below 0: which they are. */
function withoutEntries(bytes: Buffer, all: readonly Entries[]): string {
  let text = '';
  let from = 0;
  for (const [i, { open, close }] of all.entries()) {
    text += `${bytes.toString('utf8', from, open)}${-1 - i}`;
    from = close + 1;
  }
  return text + bytes.toString('utf8', from);
}

/** Whether all entries have found their choice. `bytes`: where they are kept. */
function restored(reply: JsonObject, all: readonly Entries[], bytes: Buffer | undefined): boolean {
  let found = 0;
  for (const choice of arrayOf(reply['choices']).map(objectOf)) {
    const { content, ...others } = objectOf(choice['logprobs']);
    const entries = typeof content === 'number' ? all[-1 - content] : undefined;
    if (entries === undefined) continue;
    const { logprobs, open, close } = entries;
    // A string of its own: a part of the reply's text would keep all of that.
    const text = bytes?.toString('latin1', open, close + 1);
    choice['logprobs'] = text === undefined ? numbers(logprobs, others) : unread({ logprobs, text }, others);
    found++;
  }
  return found === all.length;
}

/** A choice's `logprobs` of which only the numbers are left. */
const numbers = (logprobs: readonly number[], others: JsonObject): JsonObject =>
  Object.assign({ [UNREAD]: { logprobs } satisfies Unread }, others);

/** A choice's `logprobs`: the entries are there when they are asked for. */
function unread(entries: Required<Unread>, others: JsonObject): JsonObject {
  const logprobs = Object.defineProperty({}, 'content', WHEN_ASKED);
  Object.defineProperty(logprobs, UNREAD, { value: entries });
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

const BYTES = String.raw`"bytes":(?:null|\[[\d,]*\])`;
const UP_TO_NUMBER = String.raw`\{(?:"id":\d+,)?"token":"(?:[^"\\]|\\.)*",(?:${BYTES},)?"logprob":`;
/** An entry up to its number, as engines write it where no other logprobs than the token's are asked for. */
const FIRST = new RegExp(UP_TO_NUMBER, 'y');
/** What is behind the number, then the next entry up to its number, or the end. */
const NEXT = new RegExp(String.raw`(?:,${BYTES})?,"top_logprobs":\[\]\}(?:,${UP_TO_NUMBER}|\])`, 'y');
const ARRAY_END = ']';

/** The member `logprob` of each entry; undefined: they are not such entries. */
function entriesFrom(text: string, open: number): Entries | undefined {
  const logprobs: number[] = [];
  FIRST.lastIndex = open + 1;
  if (!FIRST.test(text)) return undefined;
  const number = new NumberReader(text, FIRST.lastIndex);
  for (;;) {
    logprobs.push(logprobOf(number.read()));
    NEXT.lastIndex = number.at;
    if (!NEXT.test(text)) return undefined;
    number.at = NEXT.lastIndex;
    if (text[number.at - 1] === ARRAY_END) return { open, close: number.at - 1, logprobs };
  }
}

/** Digits behind those that it holds say nothing of a float32 any more, which a logprob is kept as. */
const MANTISSA_MAX = 2 ** 49;
/** Powers of ten up to here are exact. */
const EXPONENT_MAX = 22;
const POWERS = Array.from({ length: EXPONENT_MAX + 1 }, (_, exponent) => 10 ** exponent);
/** However it is written; engines in Python write NaN where there is none. */
const WRITTEN = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|null|-?NaN|-?Infinity/y;
const [MINUS, DOT, ZERO, NINE, E] = [0x2d, 0x2e, 0x30, 0x39, 0x65];

class NumberReader {
  readonly #text: string;
  /** Where the next one is; after a read, what is behind it. */
  at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** NaN where there is no number. */
  read(): number {
    const text = this.#text;
    const from = this.at;
    const negative = text.charCodeAt(from) === MINUS;
    let value = 0;
    let behindDot = 0;
    let dot = false;
    let at = negative ? from + 1 : from;
    for (; ; at++) {
      const char = text.charCodeAt(at);
      if (char === DOT && !dot) dot = true;
      else if (!(char >= ZERO && char <= NINE)) break;
      else if (value < MANTISSA_MAX) {
        value = value * 10 + char - ZERO;
        if (dot) behindDot++;
      } else if (!dot) return this.#written();
    }
    const whole = text.charCodeAt(at - 1) !== MINUS && text.charCodeAt(at) !== E;
    if (at === from || !whole || behindDot > EXPONENT_MAX) return this.#written();
    this.at = at;
    const size = value / (POWERS[behindDot] as number);
    return negative ? -size : size;
  }

  #written(): number {
    WRITTEN.lastIndex = this.at;
    const [text] = WRITTEN.exec(this.#text) ?? [''];
    this.at += text.length;
    return text === '' || text === 'null' ? Number.NaN : Number(text);
  }
}
