// The openai-responses dialect: tools, in the words of openai-chat, and under which names their calls are shown.
import { isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import { functionOfCustom } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rules } from '../features.ts';
import { byName, readFunction } from '../openai-chat/tools.ts';

const TOOLS: Rules = {
  function: { support: 'mapped', how: 'to the same in the form of openai-chat' },
  custom: {
    support: 'mapped',
    how: 'to a function with one string `input`; calls are answered as `custom_tool_call`',
  },
  namespace: {
    support: 'mapped',
    how: 'its tools under `<namespace>__<name>`; calls are answered with `namespace` and `name`',
  },
  'any other': { support: 'refused', how: 'runs at the provider: declare a function or custom tool for it' },
};

export const toolFeatures = featuresOf('tools', TOOLS);

/** How the harness declared a tool. */
export interface Declared {
  readonly name: string;
  readonly namespace?: string;
  /** It takes free text. */
  readonly custom: boolean;
}

export interface Tools {
  /** As the engine gets them. */
  readonly list: JsonObject[];
  /** By the name that the engine knows. */
  readonly declared: Map<string, Declared>;
}

/** The name of a tool for the engine. */
export const flatName = (name: string, namespace: JsonValue | undefined): string =>
  textOf(namespace) === undefined ? name : `${namespace}__${name}`;

export function readTools(tools: JsonValue | undefined, faults: Faults): Tools {
  const read: Tools = { list: [], declared: new Map() };
  if (Array.isArray(tools)) readList(tools, 'tools', undefined, read, faults);
  return read;
}

function readList(
  tools: readonly JsonValue[],
  at: string,
  namespace: string | undefined,
  into: Tools,
  faults: Faults,
): void {
  for (const [i, tool] of tools.entries()) {
    if (isObject(tool)) readTool(tool, `${at}[${i}]`, namespace, into, faults);
    else faults.add(`${at}[${i}]`, 'must be an object');
  }
}

function readTool(
  tool: JsonObject,
  at: string,
  namespace: string | undefined,
  into: Tools,
  faults: Faults,
): void {
  const { type, tools } = tool;
  const name = textOf(tool['name']);
  if (type === 'namespace' && namespace === undefined) {
    const whole = name !== undefined && Array.isArray(tools);
    if (faults.expect(whole, at, 'must have a name and tools')) {
      readList(tools as JsonValue[], `${at}.tools`, name, into, faults);
    }
    return;
  }
  if (type !== 'function' && type !== 'custom') {
    faults.add(`${at}.type`, `${textOf(type) ?? 'a tool without a type'} ${TOOLS['any other']?.how}`);
    return;
  }
  readFunction(tool, at, faults);
  if (name === undefined) return;
  const flat = flatName(name, namespace);
  faults.expect(!into.declared.has(flat), `${at}.name`, 'is the name of two tools');
  into.declared.set(flat, { name, ...(namespace !== undefined && { namespace }), custom: type === 'custom' });
  into.list.push(type === 'custom' ? functionOfCustom({ ...tool, name: flat }) : functionOf(tool, flat));
}

function functionOf({ description, parameters, strict }: JsonObject, name: string): JsonObject {
  const definition: JsonObject = { name };
  for (const [key, value] of Object.entries({ description, parameters, strict })) {
    if (value !== undefined && value !== null) definition[key] = value;
  }
  return { type: 'function', function: definition };
}

const WORDS = ['none', 'auto', 'required'];

/** `tool_choice` in the words of openai-chat; undefined: not said. */
export function readToolChoice(
  choice: JsonValue | undefined,
  tools: Tools,
  faults: Faults,
): JsonValue | undefined {
  if (choice === undefined || choice === null) return undefined;
  if (typeof choice === 'string' && WORDS.includes(choice)) return choice;
  if (isObject(choice) && (choice['type'] === 'function' || choice['type'] === 'custom')) {
    const name = flatName(textOf(choice['name']) ?? '', choice['namespace']);
    return byName({ name }, tools, 'tool_choice.name', faults);
  }
  faults.add('tool_choice', `must be ${WORDS.join(', ')}, or a function or custom tool by name`);
  return undefined;
}
