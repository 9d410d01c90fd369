// The anthropic-messages dialect: one message of the harness as those of the conversation. Everything stays in its place:
// tool results before or after the text beside them, and a system message amid the others.
import { type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import type { GrownSet } from '../grown.ts';
import type { Reading } from '../read-once.ts';
import { openReasoning } from '../sealed-reasoning.ts';
import { argumentsOf } from './arguments.ts';
import { blocksOf, contentOf, partsOf, refuseBlock, textPart } from './content.ts';
import { toolOf } from './tools.ts';

/** Ids of the calls made so far. */
export type Calls = GrownSet;

export interface Turn {
  readonly messages: readonly JsonObject[];
  /** Tools that come up amid the conversation. */
  readonly tools: readonly JsonObject[];
}

/** What the model is told by words, as the conversation has none for it. */
const TOOL_ERROR = '[Tool Error] ';

export function readTurn(
  message: JsonObject,
  calls: Calls,
  field: string,
  faults: Faults,
): Reading<Calls, Turn> {
  const { role, content } = message;
  const at = `${field}.content`;
  if (role === 'system') return { said: readSystem(content ?? '', at, faults), after: calls };
  if (role === 'user') {
    const messages = userMessages(blocksOf(content, at, faults), calls, at, faults);
    return { said: { messages, tools: [] }, after: calls };
  }
  if (role === 'assistant') return assistantTurn(blocksOf(content, at, faults), calls, at, faults);
  faults.add(`${field}.role`, 'must be one of user, assistant, system');
  return { said: { messages: [], tools: [] }, after: calls };
}

/** `system` of the body, or the content of a message of that role. */
export function readSystem(content: JsonValue, field: string, faults: Faults): Turn {
  const tools: JsonObject[] = [];
  const parts = blocksOf(content, field, faults).flatMap((block, i) => {
    const at = `${field}[${i}]`;
    const change = block['type'] === 'tool_addition' || block['type'] === 'tool_removal';
    return change ? toolChange(block, tools, at, faults) : partsOf(block, at, faults);
  });
  return { messages: [{ role: 'system', content: contentOf(parts) }], tools };
}

/** A tool that comes or goes amid the conversation: the model is told by name. */
function toolChange(block: JsonObject, tools: JsonObject[], field: string, faults: Faults): JsonObject[] {
  const { type, name, definition } = objectOf(block['tool']);
  const added = block['type'] === 'tool_addition';
  if (type === 'tool_definition' && added) {
    const tool = toolOf(definition ?? null, `${field}.tool.definition`, faults);
    if (tool === undefined) return [];
    tools.push(tool);
    return [textPart(`Tool added: ${String(objectOf(tool['function'])['name'])}`)];
  }
  const named = type === 'tool_reference' ? textOf(name) : undefined;
  if (!faults.expect(named !== undefined, `${field}.tool`, 'must name a tool of this request')) return [];
  return [textPart(`Tool ${added ? 'added' : 'removed'}: ${named}`)];
}

function userMessages(
  blocks: readonly JsonObject[],
  calls: Calls,
  field: string,
  faults: Faults,
): JsonObject[] {
  const messages: JsonObject[] = [];
  let parts: JsonObject[] = [];
  const flush = (): void => {
    if (parts.length > 0) messages.push({ role: 'user', content: contentOf(parts) });
    parts = [];
  };
  for (const [i, block] of blocks.entries()) {
    const at = `${field}[${i}]`;
    if (block['type'] === 'tool_result') {
      flush();
      messages.push(toolMessage(block, calls, at, faults));
    } else {
      parts.push(...partsOf(block, at, faults));
    }
  }
  flush();
  return messages.length > 0 ? messages : [{ role: 'user', content: '' }];
}

function toolMessage(block: JsonObject, calls: Calls, field: string, faults: Faults): JsonObject {
  const { tool_use_id: id = '', content, is_error: isError } = block;
  const called = typeof id === 'string' && calls.has(id);
  faults.expect(called, `${field}.tool_use_id`, 'must be the id of a tool_use before it');
  const inner = `${field}.content`;
  const parts = blocksOf(content ?? '', inner, faults).flatMap((one, i) =>
    partsOf(one, `${inner}[${i}]`, faults),
  );
  return { role: 'tool', tool_call_id: id, content: contentOf(isError === true ? asError(parts) : parts) };
}

function asError(parts: readonly JsonObject[]): JsonObject[] {
  const [first, ...others] = parts;
  if (first?.['type'] !== 'text') return [textPart(TOOL_ERROR), ...parts];
  return [textPart(TOOL_ERROR + String(first['text'])), ...others];
}

function assistantTurn(
  blocks: readonly JsonObject[],
  calls: Calls,
  field: string,
  faults: Faults,
): Reading<Calls, Turn> {
  const said: string[] = [];
  const thought: string[] = [];
  const made: JsonObject[] = [];
  for (const [i, block] of blocks.entries()) {
    const at = `${field}[${i}]`;
    switch (block['type']) {
      case 'text':
        said.push(...partsOf(block, at, faults).map((part) => String(part['text'])));
        break;
      case 'thinking':
        thought.push(thinkingOf(block, at, faults));
        break;
      case 'redacted_thinking':
        thought.push(openReasoning(textOf(block['data']) ?? '') ?? '');
        break;
      case 'tool_use':
        made.push(callOf(block, at, faults));
        break;
      default:
        refuseBlock(block, at, faults);
    }
  }
  const reasoning = thought.join('');
  const message: JsonObject = {
    role: 'assistant',
    content: said.length === 0 && made.length > 0 ? null : said.join(''),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(made.length > 0 && { tool_calls: made }),
  };
  return { said: { messages: [message], tools: [] }, after: calls.with(made.map(({ id }) => String(id))) };
}

/** Shown thinking as it comes back; where it was left out, what the signature holds. */
function thinkingOf({ thinking, signature }: JsonObject, field: string, faults: Faults): string {
  if (!faults.expect(typeof thinking === 'string', `${field}.thinking`, 'must be a string')) return '';
  return textOf(thinking) ?? openReasoning(textOf(signature) ?? '') ?? '';
}

function callOf({ id, name, input }: JsonObject, field: string, faults: Faults): JsonObject {
  faults.expect(textOf(name) !== undefined, `${field}.name`, 'must be a string that is not empty');
  faults.expect(textOf(id) !== undefined, `${field}.id`, 'must be a string that is not empty');
  const called = { name: name ?? '', arguments: argumentsOf(input ?? {}) };
  return { id: id ?? '', type: 'function', function: called };
}
