// A short conversation that a chat template treats as it treats a long one: every kind of turn once, in order, all
// texts short. Templates look at roles, at what comes first, last and next, at whether a turn has thinking or calls,
// and at the last user message; not at what is said.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import { Notes } from './notes.ts';

/** Messages before the sampled turn, and that turn. */
export interface Head {
  readonly before: readonly JsonObject[];
  readonly turn: JsonObject;
}

export interface Sketch {
  readonly before: readonly JsonObject[];
  /** The sampled turn with `text` in the place of all that it says. */
  readonly turn: (text: string, thinking?: string) => JsonObject;
  /** The same with the ids of its tool calls as they are: real new messages name them. */
  readonly realTurn: JsonObject;
  readonly hasThinking: boolean;
  /** The new messages as short ones. */
  readonly fresh: readonly JsonObject[];
}

/** Stands for the tool definitions. */
export const SKETCH_TOOLS: readonly JsonObject[] = [
  {
    type: 'function',
    function: { name: 'x', description: 'x', parameters: { type: 'object', properties: {} } },
  },
];

/** `keepIds`: the template writes down the ids of tool calls. `notes`: of the body with the messages. */
export function sketchOf(
  { before, turn }: Head,
  fresh: readonly JsonObject[],
  keepIds: boolean,
  notes = new Notes(),
): Sketch {
  const short = (message: JsonObject, i: number): JsonObject => shortened(message, { keepIds, place: i });
  return {
    before: kindsOf(before, notes.each(before, kindOf)).map(short),
    turn: (text, thinking = text) => shortened(turn, { text, thinking, keepIds }),
    realTurn: shortened(turn, { keepIds: true }),
    hasThinking: thinkingOf(turn) !== '',
    fresh: fresh.map(short),
  };
}

/** Whether a message is more than text. */
export function hasMedia(message: JsonObject): boolean {
  const { content } = message;
  return Array.isArray(content) && content.some((part) => isObject(part) && part['type'] !== 'text');
}

/** The thinking of an assistant's message, whichever way it is written down. */
export function thinkingOf(message: JsonObject): string {
  const { reasoning_content: one, reasoning: other, content } = message;
  for (const text of [one, other]) if (typeof text === 'string' && text !== '') return text;
  return typeof content === 'string' && content.includes('</think>') ? content : '';
}

/** The first turn of each kind, with what follows it to the next turn; everything that comes before the first turn. */
function kindsOf(messages: readonly JsonObject[], kinds: readonly string[]): JsonObject[] {
  const lastUser = kinds.lastIndexOf('user');
  const seen = new Set<string>();
  const kept: JsonObject[] = [];
  let last: Step = { from: 0, to: 0 };
  for (let from = 0; from < messages.length; from = last.to) {
    const step = { from, to: endOfStep(kinds, from) };
    const isSame = isAlike(kinds, last, step) && (step.to <= lastUser || last.from > lastUser);
    last = step;
    // Most are as the one before.
    if (isSame) continue;
    // Of several messages of one kind behind each other, one.
    const places = range(step).filter((i) => i === from || kinds[i] !== kinds[i - 1]);
    // Where it stands counts: at the start, before, with or behind the last user message.
    const kind = [from === 0, from > lastUser, step.to > lastUser, ...places.map((i) => kinds[i])].join();
    if (!seen.has(kind)) kept.push(...places.map((i) => withOneCall(messages[i] as JsonObject)));
    seen.add(kind);
  }
  return kept;
}

/** A turn and what follows it to the next one. */
interface Step {
  readonly from: number;
  readonly to: number;
}

const range = ({ from, to }: Step): number[] => Array.from({ length: to - from }, (_, i) => from + i);

/** Behind the last message before the next turn. */
function endOfStep(kinds: readonly string[], from: number): number {
  let to = from + 1;
  while (to < kinds.length && kinds[to]?.startsWith(TURN) === false) to++;
  return to;
}

/** Whether two steps, neither of them the first one, have the same kinds of messages. */
function isAlike(kinds: readonly string[], one: Step, other: Step): boolean {
  if (one.from === 0 || one.to - one.from !== other.to - other.from) return false;
  for (let i = one.from; i < one.to; i++) if (kinds[i] !== kinds[other.from + i - one.from]) return false;
  return true;
}

/** A turn that asks for one call in the place of many. */
function withOneCall(message: JsonObject): JsonObject {
  const [call] = arrayOf(message['tool_calls']);
  return call === undefined ? message : { ...message, tool_calls: [call] };
}

/** Kinds of turns begin so; others are roles. */
const TURN = 'assistant:';
/** The very same texts each time, as those are compared by where they lie. */
const TURNS = Array.from({ length: 16 }, (_, place) => `${TURN}${place}`);

function kindOf(message: JsonObject): string {
  const { role, tool_calls: calls, content } = message;
  if (role !== 'assistant') return String(role);
  const tagged = typeof content === 'string' && content.includes('</think>');
  const says = content !== null && content !== undefined && content !== '';
  const told = [thinkingOf(message) !== '', tagged, arrayOf(calls).length > 0, says];
  return TURNS[told.reduce((place, one) => place * 2 + Number(one), 0)] as string;
}

interface Shortening {
  readonly text?: string;
  readonly thinking?: string;
  readonly keepIds: boolean;
  /** Of a tool's message among those of its kind: which call it answers. */
  readonly place?: number;
}

function shortened(
  message: JsonObject,
  { text = 'x', thinking = 'x', keepIds, place = 0 }: Shortening,
): JsonObject {
  const { role, content, name, tool_calls: calls, tool_call_id: callId } = message;
  const short: JsonObject = { role: role ?? 'user', content: shortContent(content, text, thinking) };
  if (typeof name === 'string') short['name'] = name;
  if (role === 'tool') short['tool_call_id'] = keepIds ? (callId ?? null) : sketchCallId(place);
  if (role !== 'assistant') return short;
  for (const key of ['reasoning_content', 'reasoning']) {
    if (typeof message[key] === 'string' && message[key] !== '') short[key] = thinking;
  }
  if (arrayOf(calls).length > 0) short['tool_calls'] = shortCalls(arrayOf(calls), text, keepIds);
  return short;
}

function shortContent(content: JsonValue | undefined, text: string, thinking: string): JsonValue {
  if (content === null || content === undefined || content === '') return content ?? null;
  const tagged = typeof content === 'string' && content.includes('</think>');
  return tagged ? `<think>\n${thinking}\n</think>\n\n${text}` : text;
}

/** Of the length and the characters that the strictest template asks for. */
const sketchCallId = (place: number): string => `call0000${place % 10}`;

function shortCalls(calls: readonly JsonValue[], text: string, keepIds: boolean): JsonValue {
  return calls.map(objectOf).map((call, i) => {
    const id = keepIds ? (call['id'] ?? null) : sketchCallId(i);
    const { name } = objectOf(call['function']);
    return { id, type: 'function', function: { name: name ?? 'x', arguments: JSON.stringify({ x: text }) } };
  });
}
