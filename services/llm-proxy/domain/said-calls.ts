// Tool calls as the model wrote them. Harnesses send them back with arguments that they have parsed and written again:
// other spaces and escapes, or members of the tool's schema added with their defaults. What the engine is given as the
// model's own words is to be the model's own words.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { arrayOf, canonicalJson, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';

export class SaidCalls {
  /** Argument texts by the id of their call; some engines give an id more than once. */
  readonly #texts = new Map<string, readonly string[]>();
  /** By message as sent, so that a message that comes again is looked at once. */
  readonly #restored = new WeakMap<JsonObject, JsonObject>();

  /** Take in the reply of a record. */
  add({ replyDigest, messageBodies }: Completion): void {
    const body = messageBodies[replyDigest];
    if (body === undefined || !body.includes('"tool_calls"')) return;
    const message = objectOf(JSON.parse(body));
    for (const call of arrayOf(message['tool_calls']).map(objectOf)) {
      const { arguments: text } = objectOf(call['function']);
      const { id } = call;
      if (typeof id !== 'string' || typeof text !== 'string') continue;
      this.#texts.set(id, [...(this.#texts.get(id) ?? []), text]);
    }
  }

  /** The message with the arguments that were recorded; the same object where nothing differs. */
  restore(message: JsonObject): JsonObject {
    if (this.#texts.size === 0 || !Array.isArray(message['tool_calls'])) return message;
    let restored = this.#restored.get(message);
    if (restored === undefined) {
      restored = this.#restore(message);
      this.#restored.set(message, restored);
    }
    return restored;
  }

  #restore(message: JsonObject): JsonObject {
    let same = true;
    const calls = arrayOf(message['tool_calls']).map((call) => {
      const next = this.#restoreCall(call);
      same &&= next === call;
      return next;
    });
    return same ? message : { ...message, tool_calls: calls };
  }

  #restoreCall(call: JsonValue): JsonValue {
    if (!isObject(call)) return call;
    const { id, function: named } = call;
    const { arguments: sent } = objectOf(named);
    if (typeof id !== 'string' || typeof sent !== 'string') return call;
    const texts = this.#texts.get(id) ?? [];
    if (texts.includes(sent)) return call;
    const text = texts.find((one) => isSame(one, sent)) ?? onlyOf(texts.filter((one) => isPart(one, sent)));
    return text === undefined ? call : { ...call, function: { ...objectOf(named), arguments: text } };
  }
}

const onlyOf = (texts: readonly string[]): string | undefined => (texts.length === 1 ? texts[0] : undefined);

const isSame = (said: string, sent: string): boolean => {
  const [a, b] = [parsed(said), parsed(sent)];
  return a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b);
};

/** Whether what was said is all there as it was, and only members were added to it. */
function isPart(said: string, sent: string): boolean {
  const [a, b] = [parsed(said), parsed(sent)];
  if (!isObject(a) || !isObject(b)) return false;
  return Object.entries(a).every(([key, value]) => {
    const other = b[key];
    return other !== undefined && canonicalJson(value) === canonicalJson(other);
  });
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
