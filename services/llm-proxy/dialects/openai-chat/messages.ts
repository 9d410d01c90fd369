// The openai-chat dialect: the messages of a request, checked, and in the form that engines take.
import { arrayOf, isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import { argumentsOfInput } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rules } from '../features.ts';
import { readContent } from './content.ts';

const ROLES: Rules = {
  system: { support: 'carried', how: 'where it stands' },
  developer: { support: 'carried', how: 'sent as `system`, recorded as it is' },
  user: { support: 'carried', how: '' },
  assistant: {
    support: 'carried',
    how: 'with `tool_calls` (function, custom), `reasoning_content` (or `reasoning`); `refusal` alone is its text; `audio` is refused',
  },
  tool: { support: 'carried', how: 'only after the call that it answers' },
  function: { support: 'mapped', how: 'to tool; answers the last `function_call` of its name' },
};

export const roleFeatures = featuresOf('messages', ROLES);

/** What can be said of a message only with those before it. */
interface Before {
  readonly callIds: Set<string>;
  /** Ids given to calls of the legacy form, by function. */
  readonly legacyIds: Map<string, string>;
}

/** The messages as the engine gets them: the same objects where nothing is to be said otherwise. */
export function readMessages(messages: JsonValue | undefined, faults: Faults): JsonObject[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    faults.add('messages', 'must be an array with at least one message');
    return [];
  }
  const before: Before = { callIds: new Set(), legacyIds: new Map() };
  return messages.map((message: JsonValue, i) => {
    if (isObject(message)) return readOnce(message, i, before, faults);
    faults.add(`messages[${i}]`, 'must be an object');
    return {};
  });
}

/**
 * Messages of earlier turns come as the very same objects: each is read once, but for what depends on those before. Those
 * that say what they are to say stand by themselves, as V8's small collections keep what a WeakMap holds.
 */
const plain = new WeakSet<JsonObject>();
const known = new WeakMap<JsonObject, JsonObject>();

function readOnce(message: JsonObject, i: number, before: Before, faults: Faults): JsonObject {
  const { role, tool_call_id: answers } = message;
  const already = plain.has(message) ? message : known.get(message);
  const said = already ?? readMessage(message, i, before, faults);
  for (const call of arrayOf(said['tool_calls'])) {
    const id = isObject(call) ? textOf(call['id']) : undefined;
    if (id !== undefined) before.callIds.add(id);
  }
  if (role === 'tool' && !(typeof answers === 'string' && before.callIds.has(answers))) {
    faults.add(`messages[${i}].tool_call_id`, 'must name a tool call of an earlier message');
  }
  if (already !== undefined) return said;
  const alone = role !== 'function' && !isObject(message['function_call']);
  if (alone && faults.none) {
    if (said === message) plain.add(message);
    else known.set(message, said);
  }
  return said;
}

function readMessage(message: JsonObject, i: number, before: Before, faults: Faults): JsonObject {
  const at = `messages[${i}]`;
  const { role } = message;
  if (typeof role !== 'string' || !Object.hasOwn(ROLES, role)) {
    faults.add(`${at}.role`, `must be one of ${Object.keys(ROLES).join(', ')}`);
    return message;
  }
  const content = readContent(message['content'], `${at}.content`, faults);
  const same = content === (message['content'] ?? null);
  const refusal = role === 'assistant' && content === null ? textOf(message['refusal']) : undefined;
  const said = same && refusal === undefined ? message : { ...message, content: refusal ?? content };
  if (role === 'assistant') return readAssistant(said, i, before, faults);
  const silent = (message['content'] ?? null) === null && role !== 'tool' && role !== 'function';
  faults.expect(!silent, `${at}.content`, 'is missing');
  return role === 'function' ? readFunction(said, at, before, faults) : said;
}

function readAssistant(given: JsonObject, i: number, before: Before, faults: Faults): JsonObject {
  const at = `messages[${i}]`;
  const { reasoning_content: thought, reasoning } = given;
  const message = thoughtOf(given);
  const { tool_calls: calls, function_call: legacy } = message;
  for (const [name, value] of Object.entries({ reasoning_content: thought, reasoning })) {
    const said = value ?? null;
    faults.expect(said === null || typeof said === 'string', `${at}.${name}`, 'must be a string');
  }
  faults.expect((message['audio'] ?? null) === null, `${at}.audio`, 'audio is not offered');
  if (isObject(legacy)) return readLegacyCall(message, legacy, i, before, faults);
  if (calls === undefined || calls === null) return message;
  if (!faults.expect(Array.isArray(calls), `${at}.tool_calls`, 'must be an array')) return message;
  const list = calls as readonly JsonValue[];
  const read = list.map((call, n) => readCall(call, `${at}.tool_calls[${n}]`, faults));
  return read.every((call, n) => call === list[n]) ? message : { ...message, tool_calls: read };
}

/** Thinking by the name that all engines know. */
function thoughtOf(message: JsonObject): JsonObject {
  if (textOf(message['reasoning']) === undefined || textOf(message['reasoning_content']) !== undefined) {
    return message;
  }
  const { reasoning, ...rest } = message;
  return { ...rest, reasoning_content: reasoning ?? null };
}

function readCall(call: JsonValue, at: string, faults: Faults): JsonValue {
  if (!isObject(call)) {
    faults.add(at, 'must be an object');
    return call;
  }
  faults.expect(textOf(call['id']) !== undefined, `${at}.id`, 'must be a string');
  if (call['type'] === 'custom') return readCustomCall(call, at, faults);
  faults.expect((call['type'] ?? 'function') === 'function', `${at}.type`, 'must be function or custom');
  const called = isObject(call['function']) ? call['function'] : {};
  faults.expect(textOf(called['name']) !== undefined, `${at}.function.name`, 'must be a string');
  faults.expect(typeof called['arguments'] === 'string', `${at}.function.arguments`, 'must be a string');
  return call;
}

function readCustomCall(call: JsonObject, at: string, faults: Faults): JsonObject {
  const { name, input } = isObject(call['custom']) ? call['custom'] : {};
  faults.expect(textOf(name) !== undefined, `${at}.custom.name`, 'must be a string');
  faults.expect(typeof input === 'string', `${at}.custom.input`, 'must be a string');
  const args = argumentsOfInput(typeof input === 'string' ? input : '');
  return { id: call['id'] ?? '', type: 'function', function: { name: name ?? '', arguments: args } };
}

/** The legacy form has no ids: one is made of the call's place. */
function readLegacyCall(
  message: JsonObject,
  { name, arguments: args }: JsonObject,
  i: number,
  before: Before,
  faults: Faults,
): JsonObject {
  const at = `messages[${i}].function_call`;
  faults.expect(textOf(name) !== undefined, `${at}.name`, 'must be a string');
  faults.expect(typeof args === 'string', `${at}.arguments`, 'must be a string');
  const { function_call: _, ...rest } = message;
  const id = `call_of_message_${i}`;
  before.legacyIds.set(String(name), id);
  return {
    ...rest,
    tool_calls: [{ id, type: 'function', function: { name: name ?? '', arguments: args ?? '' } }],
  };
}

function readFunction(message: JsonObject, at: string, { legacyIds }: Before, faults: Faults): JsonObject {
  const id = legacyIds.get(textOf(message['name']) ?? '');
  faults.expect(id !== undefined, `${at}.name`, 'must name the function of an earlier function_call');
  const { name: _, ...rest } = message;
  return { ...rest, role: 'tool', tool_call_id: id ?? '' };
}
