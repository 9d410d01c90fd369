// The openai-responses dialect: the items of an input, each as what it says of a conversation of openai-chat.
import { isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import { argumentsOfInput } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rule } from '../features.ts';
import type { Piece } from './conversation.ts';
import { replyOf } from './output.ts';
import { readContent } from './parts.ts';
import { readReasoning } from './reasoning.ts';
import { isReference, type NamedItems } from './stored.ts';
import { flatName } from './tools.ts';

/** Goes by the item alone; undefined: it has a fault. */
type ReadItem = (item: JsonObject, at: string, faults: Faults) => Piece | undefined;
type ItemRule = Rule & { readonly read?: ReadItem };

const ELSEWHERE = 'runs at the provider and is not offered';
const ITEMS: Readonly<Record<string, ItemRule>> = {
  message: { support: 'mapped', how: 'of role system, developer, user, assistant', read: readMessage },
  reasoning: {
    support: 'mapped',
    how: 'to reasoning_content of the assistant message that follows, from encrypted_content, content or summary',
    read: (item, at, faults) => ({
      kind: 'reasoning',
      text: readReasoning(item, at, faults),
      id: textOf(item['id']),
    }),
  },
  function_call: { support: 'mapped', how: 'to a tool call; arguments verbatim', read: readCall },
  function_call_output: { support: 'mapped', how: 'to a tool message', read: readOutput },
  custom_tool_call: {
    support: 'mapped',
    how: 'to a tool call with one string `input`',
    read: readCustomCall,
  },
  custom_tool_call_output: { support: 'mapped', how: 'to a tool message', read: readOutput },
  item_reference: {
    support: 'mapped',
    how: 'to the item of that id of a reply to this attempt, unless that was asked for with `store: false`',
  },
  additional_tools: { support: 'refused', how: 'is not offered: declare all tools from the start' },
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

/** Items of earlier turns come as the very same objects: each is read once. */
const known = new WeakMap<JsonObject, Piece>();

/** What an item says; undefined: it has a fault. */
export function readItem(item: JsonValue, at: string, faults: Faults, named: NamedItems): Piece | undefined {
  if (!isObject(item)) {
    faults.add(at, 'must be an object');
    return undefined;
  }
  const before = known.get(item);
  if (before !== undefined) return before;
  if (isReference(item)) return named.read(item, at, faults);
  const rule = ruleOf(item);
  const said = rule.read?.(item, at, faults);
  const piece = said?.kind === 'message' ? said : said && { ...said, reply: replyOf(item['id']) };
  if (rule.read === undefined) {
    faults.add(`${at}.type`, `${textOf(item['type']) ?? 'an item without a type'} ${rule.how}`);
  }
  if (piece !== undefined && faults.none) known.set(item, piece);
  return piece;
}

function ruleOf(item: JsonObject): ItemRule {
  // A message may leave its type out.
  const type = item['type'] ?? ('role' in item ? 'message' : undefined);
  const rule = typeof type === 'string' && Object.hasOwn(ITEMS, type) ? ITEMS[type] : undefined;
  return rule ?? (ITEMS['any other'] as ItemRule);
}

function readMessage({ role, content }: JsonObject, at: string, faults: Faults): Piece | undefined {
  if (typeof role !== 'string' || !ROLES.includes(role)) {
    faults.add(`${at}.role`, `must be one of ${ROLES.join(', ')}`);
    return undefined;
  }
  const read = readContent(content, `${at}.content`, faults);
  return role === 'assistant'
    ? { kind: 'text', content: joined(read) }
    : { kind: 'message', message: { role, content: read } };
}

/** What a model said is one text, in however many parts. */
function joined(content: JsonValue): JsonValue {
  if (!Array.isArray(content)) return content;
  const texts = content.map((part) => (isObject(part) ? part['text'] : undefined));
  return texts.every((text) => typeof text === 'string') ? texts.join('') : content;
}

function readCall(item: JsonObject, at: string, faults: Faults): Piece {
  const { arguments: args } = item;
  faults.expect(typeof args === 'string', `${at}.arguments`, 'must be a string');
  return callOf(item, at, faults, String(args ?? ''));
}

function readCustomCall(item: JsonObject, at: string, faults: Faults): Piece {
  const { input } = item;
  faults.expect(typeof input === 'string', `${at}.input`, 'must be a string');
  return callOf(item, at, faults, argumentsOfInput(typeof input === 'string' ? input : ''));
}

function callOf(item: JsonObject, at: string, faults: Faults, args: string): Piece {
  const id = textOf(item['call_id']) ?? '';
  const name = textOf(item['name']) ?? '';
  faults.expect(id !== '', `${at}.call_id`, 'must be a string');
  faults.expect(name !== '', `${at}.name`, 'must be a string');
  const called = { name: flatName(name, item['namespace']), arguments: args };
  return { kind: 'call', id, call: { id, type: 'function', function: called } };
}

function readOutput({ call_id: callId, output }: JsonObject, at: string, faults: Faults): Piece {
  const id = textOf(callId) ?? '';
  const content = readContent(output, `${at}.output`, faults);
  return { kind: 'message', message: { role: 'tool', tool_call_id: id, content }, answers: id };
}
