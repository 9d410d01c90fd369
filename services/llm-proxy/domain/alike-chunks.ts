// The chunks of a stream are alike but for what was sampled: the text said, its logprobs and its ids. Where the text of
// a chunk is that of an earlier one with other such values, only these are read: another JSON value in the place of one
// makes JSON again.

import { parseLenient } from '../../common/lenient-json.ts';
import { exactArguments } from './exact-arguments.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from './json.ts';

/** What says so of a chunk. */
const ALIKE = Symbol('alike');

/** A chunk that differs from others of its form in what it says alone, as far as a harness sees it. */
export interface Alike {
  readonly form: Form;
  readonly said: string;
  /** As it stood in the text. */
  readonly json: string;
}

/** Set where the chunk was read as one of a form. */
export const alikeOf = (chunk: JsonObject): Alike | undefined => (chunk as { [ALIKE]?: Alike })[ALIKE];

/** Looks for a form in one stream: where chunks of several forms take turns, looking costs more than it saves. */
const LOOKS_MAX = 8;
/** A longer one is not worth it. */
const CHUNK_CHARS_MAX = 4_096;

/** Reads the chunks of one stream. */
export class ChunkReader {
  readonly #newReplyId: () => string;
  #replyId: string | undefined;
  #form: Form | undefined;
  #looks = 0;

  /** `newReplyId` makes an id for a stream that has none. */
  constructor(newReplyId: () => string) {
    this.#newReplyId = newReplyId;
  }

  /** undefined: it is no JSON. */
  read(text: string): JsonValue | undefined {
    const known = this.#form?.read(text);
    if (known !== undefined) return known;
    const value = exactArguments(parseLenient(text), text);
    if (!isObject(value)) return value;
    if (textOf(value['id']) === undefined) value['id'] = this.#replyId ??= this.#newReplyId();
    if (this.#looks < LOOKS_MAX) {
      this.#looks++;
      this.#form = Form.of(text, value) ?? this.#form;
    }
    return value;
  }
}

/** Members of a delta that hold text. */
const SAID = ['content', 'reasoning_content', 'reasoning'];

/** A place in the text of a chunk where a value stands. */
interface Spot {
  readonly what: 'said' | 'logprobs' | 'ids';
  readonly from: number;
  readonly to: number;
}

/** Stands for a value where the form is made. */
const MARKS = { said: -1, logprobs: -2, ids: -3 } as const;

export class Form {
  /** The text up to the first value. */
  readonly #first: string;
  readonly #values: readonly Spot['what'][];
  /** The text behind each of them, up to the next one. */
  readonly #behind: readonly string[];
  readonly #chunk: JsonObject;
  readonly #choice: JsonObject;
  readonly #key: string;

  private constructor(text: string, spots: readonly Spot[], chunk: JsonObject, key: string) {
    this.#first = text.slice(0, spots[0]?.from);
    this.#values = spots.map(({ what }) => what);
    this.#behind = spots.map(({ to }, i) => text.slice(to, spots[i + 1]?.from));
    this.#chunk = chunk;
    this.#choice = objectOf(arrayOf(chunk['choices'])[0]);
    this.#key = key;
  }

  /** The form of a chunk that says something; undefined where it says nothing, or not in the way that is known here. */
  static of(text: string, value: JsonObject): Form | undefined {
    const [choice, ...others] = arrayOf(value['choices']).map(objectOf);
    if (choice === undefined || others.length > 0 || (choice['finish_reason'] ?? null) !== null)
      return undefined;
    const delta = objectOf(choice['delta']);
    const key = SAID.find((one) => typeof delta[one] === 'string' && delta[one] !== '');
    if (key === undefined || changes(delta) || text.length > CHUNK_CHARS_MAX) return undefined;
    const spots = [
      spotOf(text, 'said', new RegExp(`"delta":\\s?\\{[^]*?"${key}":\\s?(?=")`)),
      spotOf(text, 'logprobs', /"logprobs":\s?\{"content":\s?(?=\[)/),
      spotOf(text, 'ids', /"token_ids":\s?(?=\[)/),
    ].filter((spot) => spot !== undefined);
    spots.sort((a, b) => a.from - b.from);
    const marked = markedChunk(text, spots);
    // One that was made for the stream stands nowhere in the text.
    if (marked !== undefined) marked['id'] = value['id'] ?? null;
    return marked !== undefined && standsWhere(marked, key, spots)
      ? new Form(text, spots, marked, key)
      : undefined;
  }

  /** The chunk, if it has this form. */
  read(text: string): JsonObject | undefined {
    if (!text.startsWith(this.#first)) return undefined;
    let at = this.#first.length;
    let json = '';
    const found: { said?: JsonValue; logprobs?: JsonValue; ids?: JsonValue } = {};
    for (let i = 0; i < this.#behind.length; i++) {
      const literal = this.#behind[i] as string;
      const last = i + 1 === this.#behind.length;
      const end = last ? text.length - literal.length : text.indexOf(literal, at);
      if (end < at || (last && !text.endsWith(literal))) return undefined;
      const what = this.#values[i] as Spot['what'];
      const written = text.slice(at, end);
      const value = readValue(written, what);
      if (value === undefined) return undefined;
      if (what === 'said') json = written;
      found[what] = value;
      at = end + literal.length;
    }
    const { said, logprobs, ids } = found;
    return typeof said === 'string' ? this.#with(said, json, logprobs, ids) : undefined;
  }

  /** A chunk of this form that says this alone. */
  saying(said: string): JsonObject {
    return this.#with(said, JSON.stringify(said), undefined, undefined);
  }

  #with(said: string, json: string, logprobs: JsonValue | undefined, ids: JsonValue | undefined): JsonObject {
    const choice: JsonObject = {
      ...this.#choice,
      delta: { ...objectOf(this.#choice['delta']), [this.#key]: said },
    };
    if (logprobs !== undefined) choice['logprobs'] = { ...objectOf(choice['logprobs']), content: logprobs };
    if (ids !== undefined) choice['token_ids'] = ids;
    const chunk: JsonObject & { [ALIKE]?: Alike } = { ...this.#chunk, choices: [choice] };
    if (said !== '') chunk[ALIKE] = { form: this, said, json };
    return chunk;
  }
}

/** Whether engine-calls.ts has something to put right in it. */
const changes = ({ content = null, tool_calls: calls }: JsonObject): boolean =>
  (content !== null && typeof content !== 'string') || arrayOf(calls).length > 0;

function readValue(text: string, what: Spot['what']): JsonValue | undefined {
  // Parsed, a string is one of its own: a part of the chunk's text would keep all of that.
  const value = parseLenient(text);
  return (what === 'said' ? typeof value === 'string' : Array.isArray(value)) ? value : undefined;
}

/** The string or array behind what `before` finds. */
function spotOf(text: string, what: Spot['what'], before: RegExp): Spot | undefined {
  const found = before.exec(text);
  if (found === null) return undefined;
  const from = found.index + found[0].length;
  const to = endOf(text, from);
  return to === undefined ? undefined : { what, from, to };
}

const STRING_OR_BRACKET = /"(?:[^"\\]|\\.)*"|[[\]]/g;

/** Where the string or array that begins at `from` ends. */
function endOf(text: string, from: number): number | undefined {
  let depth = 0;
  STRING_OR_BRACKET.lastIndex = from;
  for (let found = STRING_OR_BRACKET.exec(text); found !== null; found = STRING_OR_BRACKET.exec(text)) {
    if (found[0] === '[') depth++;
    else if (found[0] === ']') depth--;
    if (depth === 0) return STRING_OR_BRACKET.lastIndex;
  }
  return undefined;
}

/** The chunk with marks in the place of its values. */
function markedChunk(text: string, spots: readonly Spot[]): JsonObject | undefined {
  let marked = '';
  let at = 0;
  for (const { what, from, to } of spots) {
    if (from < at) return undefined;
    marked += text.slice(at, from) + MARKS[what];
    at = to;
  }
  const value = parseLenient(marked + text.slice(at));
  return isObject(value) ? value : undefined;
}

/** Whether the values are those that they were taken for. */
function standsWhere(marked: JsonObject, key: string, spots: readonly Spot[]): boolean {
  const choice = objectOf(arrayOf(marked['choices'])[0]);
  const places: Record<Spot['what'], JsonValue | undefined> = {
    said: objectOf(choice['delta'])[key],
    logprobs: objectOf(choice['logprobs'])['content'],
    ids: choice['token_ids'],
  };
  return spots.some(({ what }) => what === 'said') && spots.every(({ what }) => places[what] === MARKS[what]);
}
