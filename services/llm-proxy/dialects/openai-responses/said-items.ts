// The openai-responses dialect: a recorded reply as the items that its harness was shown.
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../../domain/json.ts';
import { reasoningIn, textIn } from '../said.ts';
import type { Spoken } from './assistant.ts';
import { callIdOf, itemId } from './output.ts';

type Items = ReadonlyMap<string, Spoken>;

/** By message, then by reply, as two may say the same: the very same pieces each time. */
const known = new WeakMap<JsonObject, Map<string, Items>>();

/** What the items of a reply say, by their ids. A call has two: which one was shown, its tool tells. */
function itemsOf(message: JsonObject, reply: string): Items {
  const ofMessage = known.get(message) ?? new Map<string, Items>();
  known.set(message, ofMessage);
  let items = ofMessage.get(reply);
  if (items === undefined) {
    items = read(message, reply);
    ofMessage.set(reply, items);
  }
  return items;
}

/** One item; undefined: the reply has none of this id. */
export function itemOf(message: JsonObject, reply: string, id: string): Spoken | undefined {
  const items = itemsOf(message, reply);
  const later = /^(rs|msg)_.+_[1-9]\d*$/.exec(id)?.[1];
  const first = later === undefined ? undefined : items.get(itemId(later, reply, 0));
  // What was said in several items was recorded as one, which the first stands for.
  if (first?.kind === 'text') return { ...first, content: '' };
  return first?.kind === 'reasoning' ? { ...first, text: '', id } : items.get(id);
}

export const piecesOf = (message: JsonObject, reply: string): Spoken[] => [
  ...new Set(itemsOf(message, reply).values()),
];

function read(message: JsonObject, reply: string): Items {
  const items = new Map<string, Spoken>();
  const idOf = (prefix: string, number = 0): string => itemId(prefix, reply, number);
  const thought = reasoningIn(message);
  const { content, tool_calls: calls } = message;
  const said = Array.isArray(content) ? content : textIn(message);
  if (thought !== '') {
    items.set(idOf('rs'), { kind: 'reasoning', text: thought, id: idOf('rs'), reply });
  }
  if (said !== undefined) items.set(idOf('msg'), { kind: 'text', content: said, reply });
  for (const [i, call] of arrayOf(calls).filter(isObject).entries()) {
    const { name, arguments: args } = objectOf(call['function']);
    const id = textOf(call['id']) ?? callIdOf(reply, i);
    const called = { name: textOf(name) ?? '', arguments: textOf(args) ?? '' };
    const piece: Spoken = { kind: 'call', id, call: { id, type: 'function', function: called }, reply };
    for (const prefix of ['fc', 'ctc']) items.set(idOf(prefix, i), piece);
  }
  return items;
}
