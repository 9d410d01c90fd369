// What engines say of messages and tool calls in more forms than harnesses take, in the one that they do: a text is a
// string, a call has an id, a name, an index of its own, and arguments that are a string.
import { PolarError } from '../../common/errors.ts';
import { parseLenient } from '../../common/lenient-json.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from './json.ts';

type NewCallId = () => string;

/** Puts a whole reply right, in place. Throws ENGINE_ERROR for a message, text or call that is none. */
export function tidyReply(reply: JsonObject, newCallId: NewCallId): void {
  for (const choice of arrayOf(reply['choices']).filter(isObject)) {
    const { message } = choice;
    if (!isObject(message)) throw broken('a choice without a message');
    tidyContent(message);
    const calls = callsIn(message);
    if (calls.length > 0) message['tool_calls'] = tidyCalls(calls, newCallId);
    // An answer that is whole has ended.
    choice['finish_reason'] ??= calls.length > 0 ? 'tool_calls' : 'stop';
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

  /** Throws ENGINE_ERROR for a text or call that is none. */
  tidy(chunk: JsonObject): void {
    for (const choice of arrayOf(chunk['choices'])) {
      if (!isObject(choice)) continue;
      const { delta, index = 0 } = choice;
      if (isObject(delta)) {
        tidyContent(delta);
        const calls = callsIn(delta);
        if (calls.length > 0) this.#tidyCalls(delta, calls, index);
      }
      if (textOf(choice['finish_reason']) !== undefined) this.#calls.get(index)?.end();
    }
  }

  #tidyCalls(delta: JsonObject, calls: readonly JsonObject[], index: JsonValue): void {
    const deltas = this.#calls.get(index) ?? new CallDeltas(this.#newCallId);
    this.#calls.set(index, deltas);
    const tidied = calls.map((call) => deltas.tidy(call)).filter((call) => call !== undefined);
    if (tidied.length > 0) delta['tool_calls'] = tidied;
    else delete delta['tool_calls'];
  }
}

const broken = (what: string): PolarError =>
  new PolarError('ENGINE_ERROR', `the engine answered with ${what}`);

/** The calls of a message or delta. */
function callsIn({ tool_calls: calls = null }: JsonObject): readonly JsonObject[] {
  if (calls === null) return [];
  if (!Array.isArray(calls) || !calls.every(isObject)) throw broken('tool_calls that are none');
  return calls;
}

/** A whole message's calls stand in their order: their indexes are of no use. */
function tidyCalls(calls: readonly JsonObject[], newCallId: NewCallId): JsonObject[] {
  const deltas = new CallDeltas(newCallId);
  const tidied = calls.map((call, index) => deltas.tidy({ ...call, index }));
  deltas.end();
  return tidied.map((call) => {
    const { index: _, ...rest } = objectOf(call);
    return rest;
  });
}

/** Some tell text in parts, as requests do. */
function tidyContent(said: JsonObject): void {
  const { content = null } = said;
  if (content === null || typeof content === 'string') return;
  const texts = arrayOf(content).map((part) => objectOf(part)['text']);
  const isText = Array.isArray(content) && texts.every((text) => typeof text === 'string');
  if (!isText) throw broken('content that is no text');
  said['content'] = texts.join('');
}

/** A call as far as the engine has told it. */
interface Call {
  id: string | undefined;
  name: string | undefined;
  arguments: string;
  /** What else there is of it, until it goes out; of its function too. */
  readonly rest: JsonObject;
  readonly others: JsonObject;
  /** Its own; unset: it waits for its name. */
  index: number | undefined;
}

/** What one delta tells of these. */
type Told = Pick<Call, 'id' | 'name' | 'arguments'>;

/** The calls of one choice. */
class CallDeltas {
  readonly #newCallId: NewCallId;
  readonly #calls: Call[] = [];
  /** Which call the engine means by an index. */
  readonly #places = new Map<number, Call>();
  #begun = 0;

  constructor(newCallId: NewCallId) {
    this.#newCallId = newCallId;
  }

  /** Harnesses take id and name from a call's first delta, and only from there. undefined: the name is still to come. */
  tidy({ index, id, type, function: called, ...rest }: JsonObject): JsonObject | undefined {
    const { name, arguments: args, ...others } = objectOf(called);
    const text = textOfArguments(args);
    const told = { id: textOf(id), name: textOf(name), arguments: text ?? '' };
    const call = this.#callOf(typeof index === 'number' ? index : undefined, told);
    call.id ??= told.id;
    call.name ??= told.name;
    call.arguments += told.arguments;
    if (call.index !== undefined) {
      const more = text === undefined ? others : { ...others, arguments: text };
      return { ...rest, index: call.index, function: more };
    }
    Object.assign(call.rest, rest);
    Object.assign(call.others, others);
    return call.name === undefined ? undefined : this.#begin(call, call.name, type ?? 'function');
  }

  /** There is no more. Throws ENGINE_ERROR for a call that has no name. */
  end(): void {
    if (this.#begun < this.#calls.length) throw broken('a tool call without a name');
  }

  #begin(call: Call, name: string, type: JsonValue): JsonObject {
    call.index = this.#begun++;
    const { rest, index, id = this.#newCallId(), others } = call;
    return { ...rest, index, id, type, function: { ...others, name, arguments: call.arguments } };
  }

  /** The call that a delta is of. Some engines have one index for all calls, or none. */
  #callOf(index: number | undefined, told: Told): Call {
    const same = told.id === undefined ? undefined : this.#calls.findLast(({ id }) => id === told.id);
    const known = index === undefined ? (same ?? this.#calls.at(-1)) : this.#places.get(index);
    if (known !== undefined && !isAnother(known, told)) return known;
    const call = { id: told.id, name: told.name, arguments: '', rest: {}, others: {}, index: undefined };
    this.#places.set(index ?? this.#calls.length, call);
    this.#calls.push(call);
    return call;
  }
}

/** Whether a delta begins another call in the place of this one. Some tell the name again with each delta, or a new id. */
function isAnother(call: Call, { id, name, arguments: text }: Told): boolean {
  if (name === undefined || call.name === undefined) return false;
  if (name !== call.name) return true;
  if (id !== undefined && call.id !== undefined && id !== call.id) return true;
  return /^\s*\{/.test(text) && isWhole(call.arguments);
}

/** Arguments that are an object do not go on with another. */
const isWhole = (args: string): boolean => args.trimEnd().endsWith('}') && isObject(parseLenient(args));

/** Arguments that were parsed are written again, with their digits (`exact-arguments.ts`): there is nothing else of them. */
function textOfArguments(args: JsonValue | undefined): string | undefined {
  if (args === undefined || args === null) return undefined;
  return typeof args === 'string' ? args : JSON.stringify(args);
}
