// The openai-chat dialect: tools and which of them is to be called.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../../domain/json.ts';
import { functionOfCustom } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rules } from '../features.ts';
import type { Declared } from './tool-calls.ts';

const TOOLS: Rules = {
  function: { support: 'carried', how: '' },
  custom: { support: 'mapped', how: 'to a function with one string `input`; calls are answered as `custom`' },
  'any other': { support: 'refused', how: 'runs at the provider: declare a function or custom tool for it' },
};

export const toolFeatures = featuresOf('tools', TOOLS);

export interface Tools {
  /** As the engine gets them. */
  readonly list: readonly JsonObject[];
  readonly declared: Declared;
}

export function readTools(body: JsonObject, faults: Faults): Tools {
  const custom = new Set<string>();
  const tools = Array.isArray(body['tools']) ? body['tools'] : [];
  const functions = Array.isArray(body['functions']) ? body['functions'] : [];
  const read = tools.map((tool: JsonValue, i) => readTool(tool, `tools[${i}]`, custom, faults));
  const made = functions.map((one: JsonValue, i) => {
    readFunction(one, `functions[${i}]`, faults);
    return { type: 'function', function: one };
  });
  // The very same list where nothing is to be said otherwise: it is digested once.
  const same = made.length === 0 && read.every((tool, i) => tool === tools[i]);
  const list = same ? (tools as JsonObject[]) : [...read, ...made];
  return { list, declared: { custom, legacy: functions.length > 0 && tools.length === 0 } };
}

function readTool(tool: JsonValue, at: string, custom: Set<string>, faults: Faults): JsonObject {
  if (!isObject(tool)) {
    faults.add(at, 'must be an object');
    return {};
  }
  const { type } = tool;
  if (type === 'custom') {
    const named = isObject(tool['custom']) ? tool['custom'] : {};
    const name = textOf(named['name']);
    if (faults.expect(name !== undefined, `${at}.custom.name`, 'must be a string'))
      custom.add(name as string);
    return functionOfCustom(named);
  }
  if (type === 'function') readFunction(tool['function'], `${at}.function`, faults);
  else faults.add(`${at}.type`, `${textOf(type) ?? 'a tool without a type'} ${TOOLS['any other']?.how}`);
  return tool;
}

/** A function's definition. */
export function readFunction(definition: JsonValue | undefined, at: string, faults: Faults): void {
  if (!isObject(definition)) {
    faults.add(at, 'must be an object');
    return;
  }
  const { name, description, parameters } = definition;
  faults.expect(textOf(name) !== undefined, `${at}.name`, 'must be a string');
  faults.expect(typeof (description ?? '') === 'string', `${at}.description`, 'must be a string');
  faults.expect(isObject(parameters ?? {}), `${at}.parameters`, 'must be an object');
}

export const CHOICE_WORDS = ['none', 'auto', 'required'];

export interface Choice {
  /** The tools that the engine gets. */
  readonly list: readonly JsonObject[];
  /** `tool_choice` as the engine gets it; unset: not said. */
  readonly choice?: JsonValue | undefined;
}

export function readToolChoice(body: JsonObject, tools: Tools, faults: Faults): Choice {
  const { tool_choice: choice, function_call: legacy } = body;
  const { list } = tools;
  if (choice === undefined || choice === null) return readLegacyChoice(legacy, tools, faults);
  if (isChoiceWord(choice)) return byWord(choice, list, 'tool_choice', faults);
  const { type, function: named, custom, allowed_tools: allowed } = isObject(choice) ? choice : {};
  switch (type) {
    case 'function':
      return { list, choice: byName(named, tools, 'tool_choice.function.name', faults) };
    case 'custom':
      return { list, choice: byName(custom, tools, 'tool_choice.custom.name', faults) };
    case 'allowed_tools':
      return readAllowed(objectOf(allowed), allowedName, list, 'tool_choice.allowed_tools', faults);
    default:
      faults.add(
        'tool_choice',
        `must be ${CHOICE_WORDS.join(', ')}, allowed_tools, or a function or custom tool by name`,
      );
      return { list };
  }
}

export const isChoiceWord = (choice: JsonValue): choice is string =>
  typeof choice === 'string' && CHOICE_WORDS.includes(choice);

/** A choice by one of those words. Where there are no tools engines refuse any, though nothing is asked for. */
export function byWord(word: string, list: readonly JsonObject[], at: string, faults: Faults): Choice {
  if (list.length > 0) return { list, choice: word };
  faults.expect(word !== 'required', at, 'needs tools to choose from');
  return { list };
}

const allowedName = (tool: JsonObject): string | undefined =>
  textOf(objectOf(tool[tool['type'] === 'custom' ? 'custom' : 'function'])['name']);

const MODES = ['auto', 'required'];

/** A choice among several tools: engines take one name or all, so that the others are not shown. */
export function readAllowed(
  { mode, tools }: JsonObject,
  nameOf: (tool: JsonObject) => string | undefined,
  list: readonly JsonObject[],
  at: string,
  faults: Faults,
): Choice {
  faults.expect(
    typeof mode === 'string' && MODES.includes(mode),
    `${at}.mode`,
    `must be one of ${MODES.join(', ')}`,
  );
  const names = arrayOf(tools).map((tool) => nameOf(objectOf(tool)));
  const named = (tool: JsonObject) => textOf(objectOf(tool['function'])['name']);
  const [offered, allowed] = [new Set(list.map(named)), new Set(names)];
  const known = names.every((name) => name !== undefined && offered.has(name));
  faults.expect(names.length > 0 && known, `${at}.tools`, 'must name tools of this request');
  return { list: list.filter((tool) => allowed.has(named(tool))), choice: mode ?? null };
}

function readLegacyChoice(choice: JsonValue | undefined, tools: Tools, faults: Faults): Choice {
  const { list } = tools;
  if (choice === undefined || choice === null) return { list };
  if (choice === 'none' || choice === 'auto') return byWord(choice, list, 'function_call', faults);
  return { list, choice: byName(choice, tools, 'function_call.name', faults) };
}

/** A choice of one tool. */
export function byName(
  named: JsonValue | undefined,
  tools: Pick<Tools, 'list'>,
  at: string,
  faults: Faults,
): JsonObject {
  const name = isObject(named) ? textOf(named['name']) : undefined;
  const known = tools.list.some((tool) => isObject(tool['function']) && tool['function']['name'] === name);
  faults.expect(name !== undefined && known, at, 'must name one of the tools');
  return { type: 'function', function: { name: name ?? '' } };
}
