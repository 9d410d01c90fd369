// The openai-responses dialect: tools, in the words of openai-chat, and under which names their calls are shown.
import { isObject, type JsonObject, type JsonValue, textOf } from '../../domain/json.ts';
import { functionOfCustom } from '../custom-tools.ts';
import type { Faults } from '../faults.ts';
import { featuresOf, type Rules } from '../features.ts';
import {
  byName,
  byWord,
  CHOICE_WORDS,
  type Choice,
  isChoiceWord,
  readAllowed,
  readFunction,
} from '../openai-chat/tools.ts';

const TOOLS: Rules = {
  function: { support: 'mapped', how: 'to the same in the form of openai-chat' },
  custom: {
    support: 'mapped',
    how: 'to a function with one string `input`; calls are answered as `custom_tool_call`',
  },
  namespace: {
    support: 'mapped',
    how: 'its tools under `<namespace>__<name>`, its own description left out; calls are answered with `namespace` and `name`',
  },
  defer_loading: {
    support: 'ignored',
    how: 'the tool is shown from the start, so that the prompt keeps its head',
  },
  allowed_callers: { support: 'ignored', how: 'no program at the provider calls tools' },
  output_schema: { support: 'ignored', how: 'for programs at the provider' },
  async: { support: 'ignored', how: 'outputs are taken in whichever turn they come' },
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

/** `tool_choice` in the words of openai-chat, and the tools that it leaves. */
export function readToolChoice(choice: JsonValue | undefined, tools: Tools, faults: Faults): Choice {
  const { list } = tools;
  if (choice === undefined || choice === null) return { list };
  if (isChoiceWord(choice)) return byWord(choice, list, 'tool_choice', faults);
  const { type, name, namespace } = isObject(choice) ? choice : {};
  if (type === 'function' || type === 'custom') {
    const named = { name: flatName(textOf(name) ?? '', namespace) };
    return { list, choice: byName(named, tools, 'tool_choice.name', faults) };
  }
  if (isObject(choice) && type === 'allowed_tools') {
    const nameOf = (tool: JsonObject) => flatName(textOf(tool['name']) ?? '', tool['namespace']);
    return readAllowed(choice, nameOf, list, 'tool_choice', faults);
  }
  faults.add(
    'tool_choice',
    `must be ${CHOICE_WORDS.join(', ')}, allowed_tools, or a function or custom tool by name`,
  );
  return { list };
}
