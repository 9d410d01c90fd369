// Request bodies of one session repeat the whole conversation each turn. Of a body that begins as an earlier one did,
// only what is new is looked at: the elements that both share are the very same objects again, so that what is known
// of them by identity holds, and where each lies in the bytes is known, so that it can be passed on as it came. Their
// bytes are held once.
import { Bytes } from './bytes.ts';
import { parseExact, withNumbers } from './exact-numbers.ts';
import { isObject, type JsonObject, type JsonValue } from './json.ts';
import { findArray, type Spans, spansFrom } from './json-spans.ts';
import { Notes } from './notes.ts';
import type { DialectName } from './paths.ts';

/** The member that holds the conversation. */
export const CONVERSATION_IN: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'messages',
  'openai-responses': 'input',
  'anthropic-messages': 'messages',
  'google-generate': 'contents',
};

/** A parsed body, the place of its conversation's elements in its bytes. */
export interface KnownBody {
  readonly bytes: Bytes;
  /** Unset: it has no such array, or has it twice. */
  readonly source: BodySource | undefined;
  readonly value: JsonValue;
  /** What is made of its conversation. */
  readonly notes: Notes;
}

/** A body, and the earlier one that it goes on from, which is of no more use. It must not hold that: nor so all before. */
export interface ReadBody {
  readonly body: KnownBody;
  readonly goesOn: KnownBody | undefined;
}

/** The elements of a body's conversation, each with its place. */
export interface BodySource {
  readonly bytes: Bytes;
  readonly elements: readonly JsonValue[];
  readonly spans: Spans;
  /** All other members, the conversation as the one number 0. */
  readonly rest: JsonObject;
  readonly member: string;
}

/** A body's own members are read as numbers; what is inside of them is mostly passed on. Throws SyntaxError. */
export function parseBody(text: string): JsonValue {
  const value = parseExact(text);
  return isObject(value) ? withNumbers(value) : value;
}

/** Parse a body of which the conversation is `member`; nothing of what `came` is held. Throws SyntaxError. */
export function readBody(came: Bytes, member: string, earlier: readonly KnownBody[]): ReadBody {
  const best = bestOf(came, member, earlier);
  return (best && extended(came, best)) ?? { body: whole(came, member), goesOn: undefined };
}

function whole(came: Bytes, member: string): KnownBody {
  const all = came.copy();
  const bytes = new Bytes([all]);
  const value = parseBody(all.toString('utf8'));
  const elements = isObject(value) ? value[member] : undefined;
  const open = Array.isArray(elements) ? findArray(all, member) : -1;
  const spans = open < 0 ? undefined : spansFrom(all.subarray(open), open, { open, starts: [], ends: [] });
  const rest = spans && restOf(bytes, spans, member);
  if (spans === undefined || rest === undefined || !Array.isArray(elements)) {
    return { bytes, value, source: undefined, notes: new Notes() };
  }
  return { bytes, value, source: { bytes, elements, spans, rest, member }, notes: new Notes() };
}

interface Best {
  readonly body: KnownBody;
  readonly source: BodySource;
  /** Elements that both bodies begin with. */
  readonly shared: number;
}

function bestOf(came: Bytes, member: string, earlier: readonly KnownBody[]): Best | undefined {
  let best: Best | undefined;
  for (const body of earlier) {
    const { source } = body;
    if (source?.member !== member) continue;
    const shared = sharedElements(came, source);
    if (shared > (best?.shared ?? 0)) best = { body, source, shared };
  }
  return best;
}

/** An element is the same where what comes behind it is, too: a number could go on. */
function sharedElements(came: Bytes, { bytes, spans: { ends } }: BodySource): number {
  const length = came.shared(bytes);
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] as number) < length) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Unset: it does not go on as JSON that can be put together of its pieces. */
function extended(came: Bytes, { body: earlier, source: known, shared }: Best): ReadBody | undefined {
  const { member, spans: before } = known;
  const from = before.ends[shared - 1] as number;
  const tail = came.copy(from);
  const [starts, ends] = [before.starts.slice(0, shared), before.ends.slice(0, shared)];
  const spans = spansFrom(tail, from, { open: before.open, starts, ends });
  if (spans === undefined) return undefined;
  const bytes = known.bytes.before(from, tail);
  const rest = sameRest(bytes, spans, known) ? known.rest : restOf(bytes, spans, member);
  if (rest === undefined) return undefined;
  const fresh = spans.starts.length > shared ? bracketed(bytes, spans, shared) : [];
  const elements = known.elements.slice(0, shared).concat(fresh);
  const source = { bytes, elements, spans, rest, member };
  const body = { bytes, value: { ...rest, [member]: elements }, source, notes: new Notes(earlier.notes) };
  // Where only the first messages are the same it is another conversation, and both may go on.
  return { body, goesOn: shared * 2 > known.elements.length ? earlier : undefined };
}

/** What lies before the elements is the same already, as an element is. */
function sameRest(bytes: Bytes, { close }: Spans, known: BodySource): boolean {
  return new Bytes(bytes.slice(close)).equals(new Bytes(known.bytes.slice(known.spans.close)));
}

/** The body with the array's elements as one 0. Unset: it is no JSON then, or that is not the member's value. */
function restOf(bytes: Bytes, { open, close }: Spans, member: string): JsonObject | undefined {
  try {
    const rest = parseBody(`${bytes.text(0, open)}0${bytes.text(close)}`);
    const left = isObject(rest) ? rest[member] : undefined;
    return isObject(rest) && Array.isArray(left) && left.length === 1 && left[0] === 0 ? rest : undefined;
  } catch {
    return undefined;
  }
}

const bracketed = (bytes: Bytes, { starts, ends }: Spans, from: number): JsonValue[] =>
  parseExact(`[${bytes.text(starts[from], ends.at(-1))}]`) as JsonValue[];
