// What engines say of messages and tool calls in more forms than harnesses take, in the one that they do: a text is a
// string, a call has an id, an index of its own, and arguments that are a string.
import { PolarError } from '../../common/errors.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from './json.ts';

type NewCallId = () => string;

/** Puts a whole reply right, in place. Throws ENGINE_ERROR for a message that is none. */
export function tidyReply(reply: JsonObject, newCallId: NewCallId): void {
  for (const choice of arrayOf(reply['choices']).filter(isObject)) {
    const { message } = choice;
    if (!isObject(message))
      throw new PolarError('ENGINE_ERROR', 'the engine made a choice without a message');
    tidyContent(message);
    if (Array.isArray(message['tool_calls'])) tidyCalls(message, new CallDeltas(newCallId));
    // An answer that is whole has ended.
    choice['finish_reason'] ??= 'stop';
  }
}

/** Puts the chunks of one reply right, in place. */
export class ChunkTidier {
  readonly #newCallId: NewCallId;
  /** By the index of the choice; only of those that call tools. */
  readonly #calls = new Map<JsonValue, CallDeltas>();

  constructor(newCallId: NewCallId) {
    this.#newCallId = newCallId;
  }

  /** Throws ENGINE_ERROR for content that is no text. */
  tidy(chunk: JsonObject): void {
    for (const choice of arrayOf(chunk['choices'])) {
      if (!isObject(choice) || !isObject(choice['delta'])) continue;
      const { delta, index = 0 } = choice;
      tidyContent(delta);
      if (!Array.isArray(delta['tool_calls']) || delta['tool_calls'].length === 0) continue;
      const calls = this.#calls.get(index) ?? new CallDeltas(this.#newCallId);
      this.#calls.set(index, calls);
      delta['tool_calls'] = delta['tool_calls'].map((call) => calls.tidy(objectOf(call)));
    }
  }
}

/** A whole message's calls stand in their order: their indexes are of no use. */
function tidyCalls(message: JsonObject, deltas: CallDeltas): void {
  const calls = arrayOf(message['tool_calls']);
  message['tool_calls'] = calls.map((call, index) => {
    const { index: _, ...tidied } = deltas.tidy({ ...objectOf(call), index });
    return tidied;
  });
}

/** Some tell text in parts, as requests do. */
function tidyContent(said: JsonObject): void {
  const { content = null } = said;
  if (content === null || typeof content === 'string') return;
  const texts = arrayOf(content).map((part) => objectOf(part)['text']);
  const isText = Array.isArray(content) && texts.every((text) => typeof text === 'string');
  if (!isText) throw new PolarError('ENGINE_ERROR', 'the engine answered with content that is no text');
  said['content'] = texts.join('');
}

interface Head {
  readonly id: string;
  readonly name: string;
}

/** The calls of one choice. */
class CallDeltas {
  readonly #newCallId: NewCallId;
  readonly #heads: Head[] = [];
  /** Which call the engine means by an index. */
  readonly #places = new Map<number, number>();

  constructor(newCallId: NewCallId) {
    this.#newCallId = newCallId;
  }

  /** Id and name are told once, with the first delta of a call. */
  tidy({ index, id, type, function: called, ...rest }: JsonObject): JsonObject {
    const told = typeof index === 'number' ? index : undefined;
    const { name, arguments: args, ...others } = objectOf(called);
    const at = this.#placeOf(told, textOf(id), textOf(name));
    const text = textOfArguments(args);
    if (at === undefined) {
      const head = { id: textOf(id) ?? this.#newCallId(), name: textOf(name) ?? '' };
      const next = this.#heads.push(head) - 1;
      this.#places.set(told ?? next, next);
      const begun = { ...others, name: head.name, arguments: text ?? '' };
      return { ...rest, index: next, id: head.id, type: type ?? 'function', function: begun };
    }
    const more: JsonObject = { ...others };
    // A part of a name comes without the id; with it, the name is told again.
    if (textOf(name) !== undefined && textOf(id) !== this.#heads[at]?.id) more['name'] = name ?? '';
    if (text !== undefined) more['arguments'] = text;
    return { ...rest, index: at, function: more };
  }

  /** The call that a delta goes on with; undefined: it begins one. Some have one index for all calls, or none. */
  #placeOf(told: number | undefined, id: string | undefined, name: string | undefined): number | undefined {
    const same = id === undefined ? -1 : this.#heads.findLastIndex((head) => head.id === id);
    const last = this.#heads.length === 0 ? undefined : this.#heads.length - 1;
    const known = told === undefined ? (same >= 0 ? same : last) : this.#places.get(told);
    if (known === undefined) return undefined;
    // Some give each delta an id of its own: only with a name it is another call.
    const another = id !== undefined && name !== undefined && this.#heads[known]?.id !== id;
    return another ? undefined : known;
  }
}

/** Arguments that were parsed are written again: there is nothing else of them. */
function textOfArguments(args: JsonValue | undefined): string | undefined {
  if (args === undefined || args === null) return undefined;
  return typeof args === 'string' ? args : JSON.stringify(args);
}
