// The anthropic-messages dialect: tool definitions and the choice among them.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import type { Faults } from '../faults.ts';
import { ReadOnce } from '../read-once.ts';
import { TOOL_RULES } from './rules.ts';

const KNOWN = new ReadOnce<undefined, readonly JsonObject[]>();

export function toolsOf(tools: JsonValue | undefined, faults: Faults): readonly JsonObject[] {
  return KNOWN.read(tools ?? null, undefined, faults, () => {
    const read = arrayOf(tools).map((tool, i) => toolOf(tool, `tools[${i}]`, faults));
    return { said: read.filter((tool) => tool !== undefined), after: undefined };
  }).said;
}

/** A tool as a function; undefined, with a fault, for one that cannot be. */
export function toolOf(value: JsonValue, field: string, faults: Faults): JsonObject | undefined {
  if (!isObject(value)) {
    faults.add(field, 'must be an object');
    return undefined;
  }
  const { type, name, description, input_schema: schema, input_examples: examples = null, strict } = value;
  const custom = type === undefined || type === null || type === 'custom';
  if (!custom) {
    const named = [textOf(name), textOf(type)].filter((word) => word !== undefined).join(', ');
    faults.add(field, `${named || 'its type'}: ${TOOL_RULES['any other type']?.how}`);
    return undefined;
  }
  faults.expect(textOf(name) !== undefined, `${field}.name`, 'must be a string that is not empty');
  faults.expect(isObject(schema), `${field}.input_schema`, 'must be an object');
  const shown = examples === null || Array.isArray(examples);
  faults.expect(shown, `${field}.input_examples`, 'must be an array');
  const hasText = description === undefined || description === null || typeof description === 'string';
  faults.expect(hasText, `${field}.description`, 'must be a string');
  return {
    type: 'function',
    function: {
      name: name ?? '',
      ...(typeof description === 'string' && { description }),
      parameters: arrayOf(examples).length > 0 ? { ...objectOf(schema), examples } : (schema ?? {}),
      ...(strict === true && { strict }),
    },
  };
}

const CHOICES: Readonly<Record<string, JsonValue>> = { auto: 'auto', any: 'required', none: 'none' };

/** `tool_choice` as the engine's fields. */
export function choiceFields(choice: JsonObject, tools: readonly JsonObject[], faults: Faults): JsonObject {
  const { type, name, disable_parallel_tool_use: single } = choice;
  const known = typeof type === 'string' && (Object.hasOwn(CHOICES, type) || type === 'tool');
  if (!faults.expect(known, 'tool_choice.type', 'must be one of auto, any, none, tool')) return {};
  if (tools.length === 0) {
    faults.expect(type === 'auto' || type === 'none', 'tool_choice', 'needs tools to choose from');
    return {};
  }
  if (type === 'tool') {
    const offered = tools.some((tool) => objectOf(tool['function'])['name'] === name);
    if (!faults.expect(offered, 'tool_choice.name', 'must be the name of a tool of this request')) return {};
  }
  const one = type === 'tool' ? { type: 'function', function: { name: name ?? '' } } : undefined;
  return {
    tool_choice: one ?? CHOICES[String(type)] ?? 'auto',
    ...(single === true && { parallel_tool_calls: false }),
  };
}
