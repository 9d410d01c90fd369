// Whole replies of engines are numbers for the most part: a logprob in an object of its own for each token, and the ids of
// prompt and reply. They are read from the bytes into columns, and only what is left is parsed as JSON.
import { parseLenient } from '../../common/lenient-json.ts';
import { ByteScanner, literal } from './byte-scanner.ts';
import { roomForFloats } from './column-room.ts';
import { exactArguments } from './exact-arguments.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import { logprobOf } from './logprob.ts';
import { entriesUnread, numbersOnly } from './reply-logprobs.ts';

/** An array of the reply that is not parsed with the rest. */
interface Cut {
  /** The brackets. */
  readonly open: number;
  readonly close: number;
  /** What was read of it. */
  readonly column: Float32Array | Int32Array;
}

/** In front of the entries of logprobs. No string can hold it: it would have to escape the quotes. */
const LOGPROBS = Buffer.from('"logprobs":{"content":[');
/** Behind these come ids, whatever their names begin with. */
const IDS = Buffer.from('token_ids":[');
const IDS_OF_REPLY = ['prompt_token_ids'];
const IDS_OF_CHOICE = ['token_ids', 'prompt_token_ids', 'response_token_ids', 'input_token_ids'];

/**
 * The reply; undefined: it is no JSON. Nothing of the bytes is kept. With `keep` the entries of its logprobs are there to be
 * looked at; without, only their numbers. Its ids may be Int32Arrays.
 */
export function parseReply(bytes: Buffer, keep: boolean): JsonValue | undefined {
  const cuts = cutsIn(bytes);
  if (cuts.length > 0) {
    const value = readText(without(bytes, cuts));
    if (isObject(value) && restored(value, cuts, keep ? bytes : undefined)) return value;
  }
  return readText(bytes.toString('utf8'));
}

const readText = (text: string): JsonValue | undefined => exactArguments(parseLenient(text), text);

/** In their order; none where one of them is not what it seems. */
function cutsIn(bytes: Buffer): readonly Cut[] {
  const cuts: Cut[] = [];
  const scanner = new ByteScanner(bytes);
  let logprobs = bytes.indexOf(LOGPROBS);
  for (let from = 0; ; from = scanner.at) {
    const ids = idsWithin(bytes, from, logprobs);
    const at = ids < 0 ? logprobs : ids;
    if (at < 0) return cuts;
    scanner.at = at + (ids < 0 ? LOGPROBS : IDS).length;
    const open = scanner.at - 1;
    const column = ids < 0 ? entries(scanner) : scanner.ids();
    if (column === undefined) return [];
    cuts.push({ open, close: scanner.at - 1, column });
    if (ids < 0) logprobs = bytes.indexOf(LOGPROBS, scanner.at);
  }
}

/** Where the next ids are before `end`, or before the end of all; -1: there are none. */
function idsWithin(bytes: Buffer, from: number, end: number): number {
  if (end < 0) return bytes.indexOf(IDS, from);
  const at = bytes.subarray(from, end).indexOf(IDS);
  return at < 0 ? at : from + at;
}

const FIRST = literal('{"token":"');
const FIRST_WITH_ID = literal('{"id":');
const TOKEN = literal(',"token":"');
const BYTES = literal(',"bytes":');
const NUMBER = literal(',"logprob":');
const LAST = literal(',"top_logprobs":[]}');

/** Numbers of one array on their way; it grows with the longest that came. */
let room = new Float64Array(1_024);

/** The member `logprob` of each entry, as engines write them where no other logprobs than the token's are asked for. */
function entries(scanner: ByteScanner): Float32Array | undefined {
  for (let count = 0; ; ) {
    if (!begins(scanner) || !scanner.stringEnd() || !bytesIfAny(scanner)) return undefined;
    if (!scanner.literal(NUMBER)) return undefined;
    if (count === room.length) room = grown(room);
    scanner.numberInto(room, count++);
    if (!bytesIfAny(scanner) || !scanner.literal(LAST)) return undefined;
    const more = scanner.goesOn();
    if (more !== true) return more === false ? logprobsIn(room, count) : undefined;
  }
}

function grown(before: Float64Array): Float64Array<ArrayBuffer> {
  const after = new Float64Array(before.length * 2);
  after.set(before);
  return after;
}

function logprobsIn(numbers: Float64Array, count: number): Float32Array {
  const logprobs = roomForFloats(count);
  for (let i = 0; i < count; i++) logprobs[i] = logprobOf(numbers[i]);
  return logprobs;
}

/** Goes behind the opening quote of an entry's token. */
const begins = (scanner: ByteScanner): boolean =>
  scanner.literal(FIRST) || (scanner.literal(FIRST_WITH_ID) && scanner.digits() && scanner.literal(TOKEN));

const bytesIfAny = (scanner: ByteScanner): boolean => !scanner.literal(BYTES) || scanner.nullOrNumbers();

/** No number that a reply holds, and exact. */
const FIRST_MARK = -(2 ** 52);
/** Stands for the cut of this index; with a mark, its index. */
const markOf = (index: number): number => FIRST_MARK - index;

function without(bytes: Buffer, cuts: readonly Cut[]): string {
  let text = '';
  let from = 0;
  for (let i = 0; i < cuts.length; i++) {
    const { open, close } = cuts[i] as Cut;
    text += `${bytes.toString('utf8', from, open)}${markOf(i)}`;
    from = close + 1;
  }
  return text + bytes.toString('utf8', from);
}

/** Whether all cuts have found their places. `bytes`: where the entries of logprobs are kept. */
function restored(reply: JsonObject, cuts: readonly Cut[], bytes: Buffer | undefined): boolean {
  const left = new Set(cuts);
  const cutAt = (mark: JsonValue | undefined): Cut | undefined => {
    const cut = typeof mark === 'number' ? cuts[markOf(mark)] : undefined;
    return cut !== undefined && left.delete(cut) ? cut : undefined;
  };
  restoreIds(reply, IDS_OF_REPLY, cutAt);
  for (const choice of arrayOf(reply['choices']).map(objectOf)) {
    restoreIds(choice, IDS_OF_CHOICE, cutAt);
    const { content, ...others } = objectOf(choice['logprobs']);
    const cut = cutAt(content);
    if (cut === undefined) continue;
    if (cut.column instanceof Int32Array) return false;
    // A string of its own: a part of the reply's text would keep all of that.
    const text = bytes?.toString('latin1', cut.open, cut.close + 1);
    choice['logprobs'] =
      text === undefined ? numbersOnly(cut.column, others) : entriesUnread(cut.column, text, others);
  }
  return left.size === 0;
}

function restoreIds(
  told: JsonObject,
  names: readonly string[],
  cutAt: (mark: JsonValue | undefined) => Cut | undefined,
): void {
  for (const name of names) {
    const cut = cutAt(told[name]);
    // What is read by `idsOf` may be a column already.
    if (cut !== undefined) told[name] = cut.column as unknown as JsonValue;
  }
}
