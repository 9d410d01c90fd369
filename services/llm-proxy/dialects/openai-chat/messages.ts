// The openai-chat dialect: the messages of a request, checked, and in the form that engines take.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Notes } from '../../domain/notes.ts';
import { argumentsOfInput } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rules } from '../features.ts';
import { GrownSet } from '../grown.ts';
import type { Reading } from '../read-once.ts';
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
  readonly callIds: GrownSet;
  /** The last call of the legacy form. */
  readonly legacy: LegacyCall | undefined;
}

interface LegacyCall {
  /** Of the function. */
  readonly name: string;
  /** It has been given one. */
  readonly id: string;
  readonly before: LegacyCall | undefined;
}

/** How many legacy calls back the one of an answer is looked for. */
const LEGACY_CALLS_MAX = 1_000;

const NOTHING: Before = { callIds: GrownSet.none, legacy: undefined };

type Read = Reading<Before, JsonObject>;

/** The messages as the engine gets them: the same objects where nothing is to be said otherwise. */
export function readMessages(
  messages: JsonValue | undefined,
  faults: Faults,
  notes: Notes,
): readonly JsonObject[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    faults.add('messages', 'must be an array with at least one message');
    return [];
  }
  const read = notes.inOrder<JsonValue, Read>(readMessages, messages, (message, last, i) =>
    readBehind(message, i, last?.after ?? NOTHING, faults),
  );
  return notes.each(read, saidIn);
}

const saidIn = ({ said }: Read): JsonObject => said;

function readBehind(message: JsonValue, i: number, before: Before, faults: Faults): Read {
  if (!isObject(message)) {
    faults.add(`messages[${i}]`, 'must be an object');
    return { said: {}, after: before };
  }
  const said = readMessage(message, i, before, faults);
  const { role, tool_call_id: answers } = message;
  const after = behind(said, message, before);
  if (role === 'tool' && !(typeof answers === 'string' && after.callIds.has(answers))) {
    faults.add(`messages[${i}].tool_call_id`, 'must name a tool call of an earlier message');
  }
  return { said, after };
}

/** What the next message is read after; `said` has the calls of either form. */
function behind(said: JsonObject, { role, function_call: named }: JsonObject, before: Before): Before {
  const ids = arrayOf(said['tool_calls'])
    .map((call) => textOf(objectOf(call)['id']))
    .filter((id) => id !== undefined);
  const [id] = ids;
  const callIds = before.callIds.with(ids);
  if (role === 'assistant' && isObject(named) && id !== undefined) {
    return { callIds, legacy: { name: String(named['name']), id, before: before.legacy } };
  }
  return callIds === before.callIds ? before : { ...before, callIds };
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
  if (role === 'assistant') return readAssistant(said, i, faults);
  const silent = (message['content'] ?? null) === null && role !== 'tool' && role !== 'function';
  faults.expect(!silent, `${at}.content`, 'is missing');
  return role === 'function' ? readFunction(said, at, before, faults) : said;
}

function readAssistant(given: JsonObject, i: number, faults: Faults): JsonObject {
  const at = `messages[${i}]`;
  const { reasoning_content: thought, reasoning } = given;
  const message = thoughtOf(given);
  const { tool_calls: calls, function_call: legacy } = message;
  for (const [name, value] of Object.entries({ reasoning_content: thought, reasoning })) {
    const said = value ?? null;
    faults.expect(said === null || typeof said === 'string', `${at}.${name}`, 'must be a string');
  }
  faults.expect((message['audio'] ?? null) === null, `${at}.audio`, 'audio is not offered');
  if (isObject(legacy)) return readLegacyCall(message, legacy, i, faults);
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
  faults: Faults,
): JsonObject {
  const at = `messages[${i}].function_call`;
  faults.expect(textOf(name) !== undefined, `${at}.name`, 'must be a string');
  faults.expect(typeof args === 'string', `${at}.arguments`, 'must be a string');
  const { function_call: _, ...rest } = message;
  const id = `call_of_message_${i}`;
  return {
    ...rest,
    tool_calls: [{ id, type: 'function', function: { name: name ?? '', arguments: args ?? '' } }],
  };
}

function readFunction(message: JsonObject, at: string, { legacy }: Before, faults: Faults): JsonObject {
  const id = lastOf(textOf(message['name']) ?? '', legacy);
  faults.expect(id !== undefined, `${at}.name`, 'must name the function of an earlier function_call');
  const { name: _, ...rest } = message;
  return { ...rest, role: 'tool', tool_call_id: id ?? '' };
}

function lastOf(name: string, last: LegacyCall | undefined): string | undefined {
  let call = last;
  for (let i = 0; i < LEGACY_CALLS_MAX && call !== undefined; i++, call = call.before) {
    if (call.name === name) return call.id;
  }
  return undefined;
}
