// The anthropic-messages dialect: a conversation in the words of openai-chat. Everything stays in its place: a system
// message amid the others too, and tool results before or after the text beside them.
import { type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { openReasoning } from '../sealed-reasoning.ts';
import { argumentsOf } from './arguments.ts';
import { blocksOf, contentOf, partsOf, refuseBlock, textPart } from './content.ts';
import { toolOf } from './tools.ts';

/** What the model is told by words, as the conversation has none for it. */
const TOOL_ERROR = '[Tool Error] ';

export class ConversationReader {
  readonly messages: JsonObject[] = [];
  /** Tools that come up amid the conversation. */
  readonly addedTools: JsonObject[] = [];
  readonly #faults: Faults;
  /** Calls made so far. */
  readonly #calls = new Set<string>();

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** `system` of the body, or a message of that role. */
  system(content: JsonValue | undefined, field: string): void {
    const parts = blocksOf(content, field, this.#faults).flatMap((block, i) => {
      const at = `${field}[${i}]`;
      const change = block['type'] === 'tool_addition' || block['type'] === 'tool_removal';
      return change ? this.#toolChange(block, at) : partsOf(block, at, this.#faults);
    });
    this.messages.push({ role: 'system', content: contentOf(parts) });
  }

  message(value: JsonValue, field: string): void {
    const { role, content } = objectOf(value);
    const inner = `${field}.content`;
    if (role === 'system') this.system(content ?? '', inner);
    else if (role === 'user') this.#user(blocksOf(content, inner, this.#faults), inner);
    else if (role === 'assistant') this.#assistant(blocksOf(content, inner, this.#faults), inner);
    else this.#faults.add(`${field}.role`, 'must be one of user, assistant, system');
  }

  #user(blocks: readonly JsonObject[], field: string): void {
    let parts: JsonObject[] = [];
    for (const [i, block] of blocks.entries()) {
      if (block['type'] === 'tool_result') {
        if (parts.length > 0) this.messages.push({ role: 'user', content: contentOf(parts) });
        parts = [];
        this.#toolResult(block, `${field}[${i}]`);
      } else {
        parts.push(...partsOf(block, `${field}[${i}]`, this.#faults));
      }
    }
    if (parts.length > 0 || blocks.length === 0)
      this.messages.push({ role: 'user', content: contentOf(parts) });
  }

  #toolResult(block: JsonObject, field: string): void {
    const { tool_use_id: id, content, is_error: isError } = block;
    const called = typeof id === 'string' && this.#calls.has(id);
    if (!this.#faults.expect(called, `${field}.tool_use_id`, 'must be the id of a tool_use before it'))
      return;
    const inner = `${field}.content`;
    const parts = blocksOf(content ?? '', inner, this.#faults).flatMap((one, i) =>
      partsOf(one, `${inner}[${i}]`, this.#faults),
    );
    if (isError === true) {
      const [first, ...others] = parts;
      const text = first?.['type'] === 'text' ? String(first['text']) : undefined;
      const kept = text === undefined ? parts : others;
      parts.splice(0, parts.length, textPart(TOOL_ERROR + (text ?? '')), ...kept);
    }
    this.messages.push({ role: 'tool', tool_call_id: id ?? '', content: contentOf(parts) });
  }

  #assistant(blocks: readonly JsonObject[], field: string): void {
    const said: string[] = [];
    const thought: string[] = [];
    const calls: JsonObject[] = [];
    for (const [i, block] of blocks.entries()) {
      const at = `${field}[${i}]`;
      if (block['type'] === 'text')
        said.push(...partsOf(block, at, this.#faults).map((part) => String(part['text'])));
      else if (block['type'] === 'thinking') thought.push(this.#thinking(block, at));
      else if (block['type'] === 'redacted_thinking')
        thought.push(openReasoning(String(block['data'])) ?? '');
      else if (block['type'] === 'tool_use') calls.push(...this.#toolUse(block, at));
      else refuseBlock(block, at, this.#faults);
    }
    const reasoning = thought.join('');
    this.messages.push({
      role: 'assistant',
      content: said.length === 0 && calls.length > 0 ? null : said.join(''),
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    });
  }

  /** Shown thinking as it comes back; where it was left out, what the signature holds. */
  #thinking({ thinking, signature }: JsonObject, field: string): string {
    if (!this.#faults.expect(typeof thinking === 'string', `${field}.thinking`, 'must be a string'))
      return '';
    if (thinking !== '') return String(thinking);
    return (typeof signature === 'string' ? openReasoning(signature) : undefined) ?? '';
  }

  #toolUse({ id, name, input }: JsonObject, field: string): JsonObject[] {
    const [called, named] = [textOf(id), textOf(name)];
    this.#faults.expect(named !== undefined, `${field}.name`, 'must be a string that is not empty');
    if (!this.#faults.expect(called !== undefined, `${field}.id`, 'must be a string that is not empty'))
      return [];
    this.#calls.add(called ?? '');
    const made = { name: named ?? '', arguments: argumentsOf(input ?? {}) };
    return [{ id: called ?? '', type: 'function', function: made }];
  }

  /** A tool that comes or goes amid the conversation: the model is told by name. */
  #toolChange(block: JsonObject, field: string): JsonObject[] {
    const { type, name, definition } = objectOf(block['tool']);
    const added = block['type'] === 'tool_addition';
    if (type === 'tool_definition' && added) {
      const tool = toolOf(definition ?? null, `${field}.tool.definition`, this.#faults);
      if (tool === undefined) return [];
      this.addedTools.push(tool);
      return [textPart(`Tool added: ${String(objectOf(tool['function'])['name'])}`)];
    }
    const named = type === 'tool_reference' ? textOf(name) : undefined;
    const ok = this.#faults.expect(named !== undefined, `${field}.tool`, 'must name a tool of this request');
    return ok ? [textPart(`Tool ${added ? 'added' : 'removed'}: ${named}`)] : [];
  }
}
