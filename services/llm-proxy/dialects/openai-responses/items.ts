// The openai-responses dialect: the items of an input, in the words of openai-chat.
import { isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import { argumentsOfInput } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rule } from '../features.ts';
import { readContent } from './parts.ts';
import { readReasoning } from './reasoning.ts';
import { flatName } from './tools.ts';

type ItemRule = Rule & { readonly read?: (item: JsonObject, at: string, into: Conversation) => void };

const ELSEWHERE = 'runs at the provider and is not offered';
const ITEMS: Readonly<Record<string, ItemRule>> = {
  message: { support: 'mapped', how: 'of role system, developer, user, assistant', read: readMessage },
  reasoning: {
    support: 'mapped',
    how: 'to reasoning_content of the assistant message that follows, from encrypted_content, content or summary',
    read: (item, at, into) => into.reason(readReasoning(item, at, into.faults)),
  },
  function_call: { support: 'mapped', how: 'to a tool call; arguments verbatim', read: readCall },
  function_call_output: { support: 'mapped', how: 'to a tool message', read: readOutput },
  custom_tool_call: {
    support: 'mapped',
    how: 'to a tool call with one string `input`',
    read: readCustomCall,
  },
  custom_tool_call_output: { support: 'mapped', how: 'to a tool message', read: readOutput },
  item_reference: { support: 'refused', how: 'nothing is stored for the harness: send the item itself' },
  compaction: { support: 'refused', how: 'compaction is the harness’s own' },
  ...refused('web_search_call', 'file_search_call', 'code_interpreter_call', 'image_generation_call'),
  ...refused(
    'computer_call',
    'local_shell_call',
    'shell_call',
    'apply_patch_call',
    'mcp_call',
    'tool_search_call',
  ),
  'any other': { support: 'refused', how: 'is no item that can be told to a model' },
};

function refused(...types: readonly string[]): Readonly<Record<string, ItemRule>> {
  return Object.fromEntries(types.map((type) => [type, { support: 'refused', how: ELSEWHERE }]));
}

export const itemFeatures = featuresOf('items', ITEMS);

const ROLES = ['system', 'developer', 'user', 'assistant'];

/** Puts items together: what one reply of a model was, reasoning, text and calls, becomes one assistant message. */
class Conversation {
  readonly messages: JsonObject[] = [];
  readonly callIds = new Set<string>();
  readonly faults: Faults;
  #reasoning: string | undefined;
  #text: JsonValue | undefined;
  #calls: JsonObject[] = [];

  constructor(faults: Faults) {
    this.faults = faults;
  }

  reason(text: string): void {
    if (this.#text !== undefined || this.#calls.length > 0) this.end();
    this.#reasoning = this.#reasoning === undefined ? text : `${this.#reasoning}\n\n${text}`;
  }

  speak(content: JsonValue): void {
    if (this.#text !== undefined || this.#calls.length > 0) this.end();
    this.#text = content;
  }

  call(id: string, name: string, args: string): void {
    this.callIds.add(id);
    this.#calls.push({ id, type: 'function', function: { name, arguments: args } });
  }

  /** A message of anyone but the assistant. */
  add(message: JsonObject): void {
    this.end();
    this.messages.push(message);
  }

  /** The assistant's message is over. */
  end(): void {
    if (this.#reasoning === undefined && this.#text === undefined && this.#calls.length === 0) return;
    this.messages.push({
      role: 'assistant',
      content: this.#text ?? null,
      ...(this.#reasoning !== undefined && { reasoning_content: this.#reasoning }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
    });
    this.#reasoning = undefined;
    this.#text = undefined;
    this.#calls = [];
  }
}

/** The messages of `input`. */
export function readInput(input: JsonValue | undefined, faults: Faults): JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  const into = new Conversation(faults);
  if (!Array.isArray(input) || input.length === 0) {
    faults.add('input', 'must be a string or an array with at least one item');
    return [];
  }
  for (const [i, item] of (input as readonly JsonValue[]).entries()) {
    if (isObject(item)) readItem(item, `input[${i}]`, into);
    else faults.add(`input[${i}]`, 'must be an object');
  }
  into.end();
  return into.messages;
}

function readItem(item: JsonObject, at: string, into: Conversation): void {
  // A message may leave its type out.
  const type = item['type'] ?? ('role' in item ? 'message' : undefined);
  const known = typeof type === 'string' && Object.hasOwn(ITEMS, type) ? ITEMS[type] : undefined;
  const rule = known ?? ITEMS['any other'];
  if (rule?.read !== undefined) rule.read(item, at, into);
  else into.faults.add(`${at}.type`, `${textOf(type) ?? 'an item without a type'} ${rule?.how}`);
}

function readMessage({ role, content }: JsonObject, at: string, into: Conversation): void {
  const { faults } = into;
  const known = typeof role === 'string' && ROLES.includes(role);
  if (!faults.expect(known, `${at}.role`, `must be one of ${ROLES.join(', ')}`)) return;
  const read = readContent(content, `${at}.content`, faults);
  if (role === 'assistant') into.speak(joined(read));
  else into.add({ role: role as string, content: read });
}

/** What a model said is one text, in however many parts. */
function joined(content: JsonValue): JsonValue {
  if (!Array.isArray(content)) return content;
  const texts = content.map((part) => (isObject(part) ? part['text'] : undefined));
  return texts.every((text) => typeof text === 'string') ? texts.join('') : content;
}

function readCall(item: JsonObject, at: string, into: Conversation): void {
  const { arguments: args } = item;
  into.faults.expect(typeof args === 'string', `${at}.arguments`, 'must be a string');
  addCall(item, at, into, String(args ?? ''));
}

function readCustomCall(item: JsonObject, at: string, into: Conversation): void {
  const { input } = item;
  into.faults.expect(typeof input === 'string', `${at}.input`, 'must be a string');
  addCall(item, at, into, argumentsOfInput(typeof input === 'string' ? input : ''));
}

function addCall(item: JsonObject, at: string, into: Conversation, args: string): void {
  const id = textOf(item['call_id']);
  const name = textOf(item['name']);
  into.faults.expect(id !== undefined, `${at}.call_id`, 'must be a string');
  into.faults.expect(name !== undefined, `${at}.name`, 'must be a string');
  into.call(id ?? '', flatName(name ?? '', item['namespace']), args);
}

function readOutput({ call_id: callId, output }: JsonObject, at: string, into: Conversation): void {
  const id = textOf(callId);
  const known = id !== undefined && into.callIds.has(id);
  into.faults.expect(known, `${at}.call_id`, 'must name a call of an earlier item');
  const content = readContent(output, `${at}.output`, into.faults);
  into.add({ role: 'tool', tool_call_id: id ?? '', content });
}
